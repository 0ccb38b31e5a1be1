"""A model behind an address: JSON records in, labels with probabilities out.

:func:`make_app` returns an ASGI application for a model file, which ``imcc serve`` runs.  It needs
the extra ``serve``.
"""

from imcc.serve._app import make_app

__all__ = ["make_app"]
