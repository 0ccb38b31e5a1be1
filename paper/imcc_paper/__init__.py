"""The laboratory of imcc: the paper's reproduction, studies, measurements and their pages."""
