"""
The search surface
==================

:class:`~imcc.IMCCClassifierCV` scores a whole grid of settings exactly, from one eigendecomposition
per fold, kernel and width. This example plots the scores over the whole grid.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from imcc import IMCCClassifierCV, load_dataset

# %%
# 300 rows of yeast; 7 x 7 x 7 values of ``alpha``, ``beta`` and ``gamma``, five folds.
data = load_dataset("yeast")
X, Y = data.X[:300], data.Y[:300]
powers = 10.0 ** np.arange(-3, 4)
start = time.perf_counter()
search = IMCCClassifierCV(
    alphas=powers,
    betas=powers,
    gammas=powers,
    n_clusters=(16,),
    width_scales=(1.0,),
    random_state=0,
).fit(X, Y)
seconds = time.perf_counter() - start
settings = len(search.cv_results_["params"])
print(f"{settings} settings x 5 folds, exact, in {seconds:.1f} s")
print("best:", {name: search.best_params_[name] for name in ("alpha", "beta", "gamma")})
print(f"average precision of the best: {search.best_score_:.4f}")

# %%
# Average precision against two parameters at a time, with the third one at its best value.
table = pd.DataFrame(search.cv_results_)
figure, panels = plt.subplots(1, 3, figsize=(9.4, 3.3))
low, high = np.quantile(table["mean_test_score"], [0.1, 1.0])
for axes, (first, second, third) in zip(
    panels,
    (("beta", "alpha", "gamma"), ("beta", "gamma", "alpha"), ("alpha", "gamma", "beta")),
    strict=True,
):
    part = table[table[f"param_{third}"] == search.best_params_[third]]
    surface = part.pivot(
        index=f"param_{second}", columns=f"param_{first}", values="mean_test_score"
    )
    image = axes.imshow(surface, origin="lower", vmin=low, vmax=high, cmap="viridis")
    places, names = range(0, 7, 2), [f"1e{p}" for p in range(-3, 4, 2)]
    axes.set_xticks(places, names)
    axes.set_yticks(places, names)
    axes.set(xlabel=first, ylabel=second, title=f"{third} = {search.best_params_[third]:g}")
figure.colorbar(image, ax=panels, shrink=0.8, label="average precision")
plt.show()

# %%
# ``beta`` matters most. A large ``gamma`` has an effect similar to a large ``beta``, because it also
# smooths the model; ``alpha`` has little effect over many orders of magnitude.
