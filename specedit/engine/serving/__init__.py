"""What makes a server of a scheduler's answers: who may ask, in which words, and what is counted."""
