package cli

import "strings"

// Commands are those that talk to a running server, for the command line of the
// program to embed. Their flags want the variable "server", the URL where a
// server is looked for if nothing says where it is.
type Commands struct {
	Pods       podsCommand        `cmd:"" help:"List the pods of a server."`
	Ls         lsCommand          `cmd:"" help:"List the entities of a pod: by name, those of a filter, in an order."`
	Get        getCommand         `cmd:"" help:"Show an entity, as it is or as it was."`
	Send       sendCommand        `cmd:"" help:"Send an entity a message, and print the answer."`
	Answer     answerCommand      `cmd:"" help:"Print the answer to a message that was sent without waiting for it."`
	Patch      patchCommand       `cmd:"" help:"Change a part of a document's state."`
	Rm         rmCommand          `cmd:"" help:"Delete an entity, or a pod."`
	Watch      watchCommand       `cmd:"" help:"Print changes as they come, of all pods, of one, or of an entity."`
	History    historyCommand     `cmd:"" help:"List the changes of an entity."`
	Export     exportCommand      `cmd:"" help:"Write all entities of pods as lines of JSON."`
	Import     importCommand      `cmd:"" help:"Read entities from a file, and create or replace documents."`
	Top        topCommand         `cmd:"" help:"Show what changes how often, and what the server does."`
	Quarantine quarantineCommands `cmd:"" help:"Look after the entities of a running server that cannot be read."`
	Completion completionCommand  `cmd:"" help:"Print what makes a shell complete the program's commands."`
	Complete   completeCommand    `cmd:"" name:"__complete" hidden:"" passthrough:"" help:"Print what may stand at the end of a command line."`
}

// Examples formats what stands below a command's help.
func Examples(lines ...string) string { return "Examples:\n\n  " + strings.Join(lines, "\n  ") }
