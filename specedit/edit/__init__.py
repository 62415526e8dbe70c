"""The text half: documents, regions, prompts, answers and files. It imports no torch."""
