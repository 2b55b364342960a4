package jsonfile

func runAsChild() (int, bool) { return 0, false }
