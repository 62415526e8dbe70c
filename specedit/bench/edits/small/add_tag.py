def add_tag(tag, tags=[]):
    cleaned = tag.strip().lower()
    if cleaned and cleaned not in tags:
        tags.append(cleaned)
    return tags
