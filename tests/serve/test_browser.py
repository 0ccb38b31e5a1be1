"""The pages in a real browser: the form answers, errors are shown, and nothing else is loaded."""

import numpy as np

from imcc import IMCCClassifier, save_model


def opened(browser, server, problems, requested):
    page = browser.new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.on("request", lambda request: requested.append(request.url))
    page.goto(server.url + "/")
    return page


def test_a_row_in_the_form(browser, serve, model_file, records):
    server, problems, requested = serve(model_file), [], []
    page = opened(browser, server, problems, requested)
    row = {name: value for name, value in records[0].items() if name != "key"}
    for name, value in row.items():
        page.fill(f"[data-column={name}]", str(value))
    page.click("button")
    page.wait_for_selector("#answer table")
    lines = page.locator("#answer tr")
    (expected,) = server.ask(row)["predictions"]
    names = page.locator("#answer td:first-child").all_inner_texts()
    values = page.locator("#answer td:nth-child(2)").all_inner_texts()
    shown = dict(zip(names, values, strict=True))
    assert shown == {
        name + (" ✓" if name in expected["labels"] else ""): f"{chance:.3f}"
        for name, chance in expected["probabilities"].items()
    }
    assert lines.count() == 2
    page.fill("[data-column=plan]", "gold")
    page.click("button")
    page.locator("#problem", has_text="gold").wait_for()
    assert lines.count() == 2
    assert problems == []
    page.fill("[data-column=age]", "old")
    page.click("button")
    page.locator("#problem", has_text="age").wait_for()
    assert lines.count() == 0
    problems.clear()  # the browser reports the status 422
    for name in ("The model", "Requests", "Try a row"):
        page.click(f"nav >> text={name}")
        assert page.inner_text("h1") == name
        if name == "The model":
            page.go_back()
    assert problems == []
    assert all(url.startswith((server.url, "data:")) for url in requested)
    page.close()


def test_a_row_of_numbers(browser, serve, tmp_path, small_problem):
    X, Y, new, _ = small_problem
    model = IMCCClassifier(n_clusters=4, random_state=0).fit(X, Y)
    server = serve(save_model(model, tmp_path / "m.skops"))
    page = opened(browser, server, [], [])
    page.fill("#row", str(np.round(new[0], 3).tolist()))
    page.click("button")
    page.wait_for_selector("#answer table")
    assert page.locator("#answer tr").count() == Y.shape[1]
    page.fill("#row", "[1, 2]")
    page.click("button")
    page.locator("#problem", has_text="features").wait_for()
    page.close()
