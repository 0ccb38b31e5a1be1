"""
A stream larger than memory
===========================

With ``approximation="nystroem"`` (or the linear kernel) ``fit`` accepts any source of
chunks that can be read several times: files, folders, or a function that generates them. The memory
does not grow with the number of rows.
"""

import tracemalloc

import matplotlib.pyplot as plt
import numpy as np

from imcc import IMCCClassifier
from imcc.metrics import average_precision

WEIGHTS = np.random.default_rng(0).normal(size=(20, 6))


# %%
# Chunks of 2000 rows are generated on demand and not kept.
def make_chunk(number):
    rng = np.random.default_rng(number)
    X = rng.normal(size=(2000, 20))
    Y = np.sin(X @ WEIGHTS / 3) + 0.3 * rng.normal(size=(2000, 6)) > 0.4
    return X, Y.astype(int)


def stream(n_chunks):
    return lambda: (make_chunk(number) for number in range(n_chunks))


X_test, Y_test = make_chunk(10_000)

# %%
# Fit the same model on more and more rows.
rows, precision, peak = [], [], []
for n_chunks in (1, 4, 16, 64, 128):
    clf = IMCCClassifier(32, beta=0.1, approximation="nystroem", n_components=100, random_state=0)
    tracemalloc.start()
    clf.fit(stream(n_chunks))
    peak.append(tracemalloc.get_traced_memory()[1] / 2**20)
    tracemalloc.stop()
    rows.append(2000 * n_chunks)
    precision.append(average_precision(Y_test, clf.decision_function(X_test)))
    print(
        f"{rows[-1]:6} rows: average precision {precision[-1]:.4f}, peak {peak[-1]:.0f} MiB, "
        f"all rows would be {rows[-1] * 26 * 8 / 2**20:.1f} MiB"
    )

# %%
# With more rows the model improves, and the memory stays the same.
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2))
left.plot(rows, precision, marker="o")
left.set(xscale="log", xlabel="rows", ylabel="average precision on 2000 other rows")
right.plot(rows, peak, marker="o", color="#e0812f")
right.set(xscale="log", xlabel="rows", ylabel="peak memory of fit, MiB", ylim=(0, None))
plt.show()
