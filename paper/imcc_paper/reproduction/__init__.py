"""The parts of the page docs/reproduction.md, which ``benchmarks.reproduce`` writes."""
