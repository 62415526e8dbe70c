def count_words(lines):
    counts = {}
    for line in lines:
        for word in line.lower().split():
            word = word.strip(".,;:!?")
            if word:
                counts[word] = counts.get(word, 0) + 1
    return counts
