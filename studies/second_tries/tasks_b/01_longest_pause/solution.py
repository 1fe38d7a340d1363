def longest_pause(meetings):
    longest = 0
    for i in range(1, len(meetings)):
        longest = max(longest, meetings[i][0] - meetings[i - 1][1])
    return longest
