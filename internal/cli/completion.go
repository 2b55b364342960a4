package cli

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: ${enum}."`
}

type completeCommand struct {
	Words []string `arg:"" optional:""`
}
