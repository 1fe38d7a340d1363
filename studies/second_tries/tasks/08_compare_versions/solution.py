def compare_versions(a, b):
    def parts(version):
        result = []
        for part in version.lstrip("vV").split("."):
            number = part.rstrip("abcdefghijklmnopqrstuvwxyz")
            tag = part[len(number) :]
            result.append((int(number), tag == "", tag))
        return result

    left, right = parts(a), parts(b)
    while len(left) < len(right):
        left.append((0, True, ""))
    while len(right) < len(left):
        right.append((0, True, ""))
    if left == right:
        return 0
    return -1 if left < right else 1
