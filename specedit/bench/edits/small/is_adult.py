def is_adult(person):
    age = person.get("age")
    if age is None:
        return False
    return age > 18
