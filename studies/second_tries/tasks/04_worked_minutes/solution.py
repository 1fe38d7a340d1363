def worked_minutes(shifts):
    total = 0
    for shift in shifts:
        start, end = shift.split("-")
        hours, minutes = start.split(":")
        begin = int(hours) * 60 + int(minutes)
        hours, minutes = end.split(":")
        finish = int(hours) * 60 + int(minutes)
        if finish <= begin:
            finish += 24 * 60
        length = finish - begin
        if length > 360:
            length -= 30
        total += length
    return total
