package postgres

func runAsChild() (int, bool) { return 0, false }
