"""The parts of the page docs/reproduction.md, which ``imcc_paper.reproduce`` writes."""
