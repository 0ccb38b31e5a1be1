"""Classifiers for experiments in tests: fast, slow, failing and deadly ones."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Dice(ClassifierMixin, BaseEstimator):
    """Scores by a random projection; what else it does, its parameters say."""

    def __init__(self, delay=0.0, fails=False, dies="", log="", strength=1.0, random_state=None):
        self.delay = delay
        self.fails = fails
        self.dies = dies
        self.log = log
        self.strength = strength
        self.random_state = random_state

    def fit(self, X, Y):
        if self.log:  # one line for every fit that began, from whatever process
            with Path(self.log).open("a") as file:
                file.write(f"{self.random_state}\n")
        time.sleep(self.delay)
        if self.fails and not (self.dies and Path(self.dies).exists()):
            raise ValueError("the dice fell off the table")
        if self.dies and not Path(self.dies).exists():
            os.kill(os.getpid(), signal.SIGKILL)
        rng = np.random.RandomState(self.random_state)
        self.weights_ = self.strength * rng.normal(size=(X.shape[1], Y.shape[1]))
        return self

    def decision_function(self, X):
        return X @ self.weights_

    def predict(self, X):
        return (self.decision_function(X) >= 0).astype(int)


class Rude(Dice):
    """Ends or blocks the process in one of many ways, or draws from the global generators."""

    def __init__(self, how="", log="", random_state=None):
        self.how = how
        self.log = log
        self.random_state = random_state

    def fit(self, X, Y):
        if self.how == "sys.exit":
            sys.exit(3)
        elif self.how == "os._exit":
            os._exit(0)
        elif self.how == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif self.how == "hang":
            Path(self.log).write_text(str(os.getpid()))
            while True:
                time.sleep(60)
        elif self.how == "hang with a child":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            Path(self.log).write_text(f"{os.getpid()} {child.pid}")
            while True:
                time.sleep(60)
        elif self.how == "print":
            print("something that nobody asked for")
            os.write(1, b"\x80\x04more of it")
        self.weights_ = np.random.normal(size=(X.shape[1], Y.shape[1]))
        self.weights_ *= random.random()
        return self
