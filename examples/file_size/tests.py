assert file_size(12) == "[12k]"
assert file_size(300) == "[300k]"
