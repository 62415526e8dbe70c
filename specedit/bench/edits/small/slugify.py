import re


def slugify(text, separator="-", max_length=60):
    words = re.findall(r"[a-z0-9]+", text.lower())
    slug = separator.join(words)
    return slug[:max_length].rstrip(separator)
