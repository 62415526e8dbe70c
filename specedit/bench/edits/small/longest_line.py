def longest_line(lines, tab_size=4):
    widths = []
    for line in lines:
        widths.append(len(line.rstrip().expandtabs(tab_size)))
    return max(widths)
