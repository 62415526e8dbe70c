"""specedit's drafting inside other engines. Nothing here is imported by the rest of specedit."""
