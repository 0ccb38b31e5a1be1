import joblib
import pytest
from joblib.parallel import ThreadingBackend, register_parallel_backend


@pytest.fixture
def n_jobs_used():
    """The ``n_jobs`` that joblib's backend is started with during a test."""
    used = set()

    class Recording(ThreadingBackend):
        def configure(self, n_jobs=1, **options):
            used.add(n_jobs)
            return super().configure(n_jobs, **options)

    register_parallel_backend("recording", Recording)
    with joblib.parallel_config("recording"):
        yield used
