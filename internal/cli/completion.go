package cli

import (
	"embed"
	"os"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

//go:embed completion
var scripts embed.FS

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: ${enum}."`
}

// Help says more than the list of flags.
func (completionCommand) Help() string {
	return "Commands, flags, and the names of pods, entities and messages are completed; names are those of the server, if it answers within a second, or what TWINSRV_COMPLETION_TIMEOUT says, such as 3s.\n\n" +
		Examples(
			"source <(twinsrv completion bash)              # this shell; in ~/.bashrc all that come",
			"twinsrv completion bash > /etc/bash_completion.d/twinsrv",
			`twinsrv completion zsh > "${fpath[1]}/_twinsrv"`,
			"twinsrv completion fish > ~/.config/fish/completions/twinsrv.fish",
		)
}

// Run prints the script.
func (c *completionCommand) Run(k *kong.Context) error {
	text, err := scripts.ReadFile("completion/" + c.Shell)
	if err != nil {
		return err
	}
	name := k.Model.Name
	function := "_" + regexp.MustCompile(`\W`).ReplaceAllString(name, "_")
	_, err = strings.NewReplacer("_PROGRAM", function, "PROGRAM", name).WriteString(os.Stdout, string(text))
	return err
}
