package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Nearest adds to the error of a command line whose first word is no command the
// one that may have been meant.
func Nearest(parser *kong.Kong, args []string, err error) error {
	node, word := unknownWord(parser.Model.Node, args)
	if word == "" {
		return misplaced(parser.Model.Node, args, err)
	}
	var names []string
	for _, c := range node.Children {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	text := fmt.Sprintf("there is no command %s", Printable(word))
	if near := nearest(word, names); near != "" {
		command := near
		if node.Parent != nil {
			command = node.Name + " " + near
		}
		text += fmt.Sprintf("; did you mean %q?", command)
	}
	return fmt.Errorf("%s", text)
}

// misplaced adds to the error of a command line that begins with a flag the
// command that it may belong to.
func misplaced(root *kong.Node, args []string, err error) error {
	if len(args) == 0 || !strings.HasPrefix(args[0], "-") {
		return err
	}
	for _, a := range args[1:] {
		if child(root, a) != nil {
			return fmt.Errorf("%w; flags stand behind the command: %s %s %s …", err, root.Name, a, strings.SplitN(args[0], "=", 2)[0])
		}
	}
	return err
}

// unknownWord finds the word that stands where a command should, below the
// commands before it; none if all is well.
func unknownWord(node *kong.Node, args []string) (*kong.Node, string) {
	for _, a := range args {
		if strings.HasPrefix(a, "-") || len(node.Children) == 0 {
			return node, "" // what follows belongs to a command, perhaps the one that stands for none
		}
		next := child(node, a)
		if next == nil {
			return node, a
		}
		node = next
	}
	return node, ""
}

func child(node *kong.Node, name string) *kong.Node {
	for _, c := range node.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// nearest is the name that a word most likely stands for; empty if none is near.
func nearest(word string, names []string) string {
	best, least := "", 1+max(len(word)/3, 1)
	for _, n := range names {
		d := edits(word, n)
		if strings.HasPrefix(n, word) && word != "" {
			d = min(d, 1)
		}
		if d < least {
			best, least = n, d
		}
	}
	return best
}

// edits is how many letters must be changed, put in, left out or swapped with
// the next to make one word of another.
func edits(a, b string) int {
	before, last, row := []int{}, make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, make([]int, len(b)+1)
	}
	return last[len(b)]
}
