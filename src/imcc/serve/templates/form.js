"use strict";

// Returns the row that is in the form: a record, or what is in the text of a model of arrays.
function rowOfForm() {
  const text = document.getElementById("row");
  if (text) {
    return text.value;
  }
  const record = {};
  for (const field of document.querySelectorAll("[data-column]")) {
    const value = field.value.trim();
    // As in a file: what is written is text, and an empty field is a missing value.
    record[field.dataset.column] = value === "" ? null : value;
  }
  return JSON.stringify(record);
}

function showProblem(text) {
  document.getElementById("problem").textContent = text;
}

// Shows one line per label, the most probable first; predicted ones are bold.
function showAnswer(answer) {
  const prediction = answer.predictions[0];
  const values = prediction.probabilities || prediction.scores;
  const table = document.createElement("table");
  for (const [label, value] of Object.entries(values).sort((a, b) => b[1] - a[1])) {
    const line = table.insertRow();
    const isOn = prediction.labels ? prediction.labels.includes(label) : prediction.class === label;
    line.className = isOn ? "on" : "";
    line.insertCell().textContent = isOn ? label + " ✓" : label;
    line.insertCell().textContent = value.toFixed(3);
    if (prediction.probabilities) {
      const bar = document.createElement("meter");
      bar.value = value;
      line.insertCell().append(bar);
    }
  }
  document.getElementById("answer").replaceChildren(table);
  showProblem(answer.warnings.join(" "));
}

document.getElementById("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  showProblem("");
  document.getElementById("answer").replaceChildren();
  try {
    const headers = { "content-type": "application/json" };
    const response = await fetch("predict", { method: "POST", headers, body: rowOfForm() });
    const answer = await response.json();
    if (response.ok) {
      showAnswer(answer);
    } else {
      showProblem(answer.error);
    }
  } catch (error) {
    showProblem("The server does not answer: " + error.message);
  }
});
