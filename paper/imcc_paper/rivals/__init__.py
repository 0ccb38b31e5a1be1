"""Strong rivals of the ensemble: settings searched, probabilities calibrated, and a stack of them.

    python -m imcc_paper.rivals --cache FOLDER --jobs 16            all that is not in the file
    python -m imcc_paper.rivals --cache FOLDER --sets image yeast --methods svm
    python -m imcc_paper.rivals --merge other/rivals.csv                  rows of another machine

The protocol, fixed before any row was computed; nothing is changed after rows are seen:

**Rivals.**  RBF-SVM with Platt's sigmoid per label (from three folds), extra-trees with Platt's
sigmoid on out-of-bag votes, LightGBM, XGBoost and CatBoost with early stopping, logistic
regression, an ensemble of five classifier chains over it (ECC), a network with one hidden layer
(three of them, averaged), ML-kNN and Boomer (boosted rules).  SVM, logistic regression, chains,
network and neighbours choose one of the ensemble's views of the rows: TF-IDF, unit length or
scaled columns for rows that are mostly zero; standardised, normal scores of ranks or square roots
for dense ones.  Trees and rules get the rows as they are or, mostly zero, also in TF-IDF.  The
ensemble of imcc is run as it is, with nothing to choose.

**Tuning.**  Once per data set and method, on the training part of a split that is not reported
(seed 2000; at most 8000 rows of it), of which a quarter is held out.  At most 12 settings: the
first one fixed, the others drawn at random; the search ends at ``--cap`` CPU seconds (60 for all
committed rows), the same for all, and a setting that is not finished by then does not count.  The
lowest log loss wins.  The numbers of trees and epochs are found on the held-out rows with it.  A
method none of whose settings is finished by then keeps its first one.

**Splits.**  Repetitions 0, 1 and 2 of :func:`imcc.datasets.paper_splits`, those of the paper's
experiment, so rows can be compared with ``paper.csv``.  Sets with more than 20,000 rows: at most
16,000 training and 8000 test rows of them.  Each fit has a limit of ``--fit-cap`` CPU seconds (300)
by the operating system: a method that needs longer has rows that say so.

**Out-of-fold scores.**  Three folds of the training part of the split of seed 2000, with the chosen
setting.  Those of the rows that are not test rows of a split give, for that split, the thresholds
per label of ``macro_f1_tuned`` and the weights of the stack, so that no test row of a split takes
part.  The ensemble has out-of-fold scores of its own from each fit, which its thresholds come from.

**Stack.**  The weighted sum of the log-odds of eight rivals (all but CatBoost and Boomer, and not
the ensemble), with the non-negative weights of the lowest out-of-fold log loss.  A rival over its
limit is left out, and the row says so.  Its seconds are the sums of those of its members.

**Time.**  CPU seconds of one thread each: of the search, of the out-of-fold fits, of the fit, and
of predicting the test rows.

Each data set and method is a task in a process of its own.  What is finished is kept in ``--cache``
(settings, out-of-fold scores, rows), so a stopped program goes on where it was.  Data sets have a
name of :mod:`imcc.datasets`, of ``imcc_paper.outside_sets``, or are files that imcc reads.
"""
