"""The rules that bring a bound view into normal form, one file each."""
