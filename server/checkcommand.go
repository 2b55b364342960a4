package server

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/twinsrv/twinsrv/internal/cli"
	"github.com/twinsrv/twinsrv/persist"
)

type storeCheck struct {
	storeFlags
	asFoundFlag
	Actors []string `placeholder:"POD" help:"Pods that need no definition: those of a program's own persistent actors."`
	JSON   bool     `name:"json" help:"Print the report as JSON."`
}

// Help says more than the list of flags.
func (storeCheck) Help() string {
	return "Stop the server first. It ends with 1 if something is wrong. What cannot be read of a damaged file is reported, and the rest read. What a commit log has is read, too, and folded into the file. " +
		"A store in bolt that was stopped in order is also checked where nothing can be written.\n\n" +
		cli.Examples("twinsrv store check --data ./twinsrv-data", "twinsrv store check --store json:./twins --json")
}

// Run reads everything and reports.
func (c *storeCheck) Run(ctx context.Context, given flags) error {
	t, err := c.target(given)
	if err != nil {
		return err
	}
	t.asFound = c.IgnoreMissing
	store, damage, err := t.openDamaged(ctx, commandLog())
	if err != nil {
		return err
	}
	var report persist.Report
	failed := withStore(store, func() error {
		bar := newStageBar(os.Stderr)
		defer bar.end()
		var err error
		report, err = persist.Check(ctx, store, persist.CheckOptions{Pods: c.Actors, Progress: bar.checking()})
		if err != nil {
			return err
		}
		return unfinishedCopy(ctx, store)
	})
	show := printReport
	if c.JSON {
		show = printReportJSON
	}
	if err := show(os.Stdout, t, &report, damage, failed); err != nil {
		return err
	}
	return verdict(t, &report, damage, failed)
}

// verdict is the error of a store with which something is wrong.
func verdict(t target, r *persist.Report, damage, failed error) error {
	const advice = "restore a backup, or leave what cannot be read out with `twinsrv store copy --skip-unreadable`"
	const last = "restore a backup (`twinsrv store copy --skip-unreadable` may save a part)"
	n := problemCount(r)
	switch {
	case logLost(damage):
		return fmt.Errorf("%s lacks what was acknowledged last, which its commit log should have; bring the log back, restore a backup, "+
			"or go on without with `twinsrv store discard-log`", t)
	case damage != nil && failed != nil:
		return fmt.Errorf("%s is damaged and could not be read to its end: %w; %s", t, failed, last)
	case failed != nil:
		return fmt.Errorf("%s: %w", t, failed)
	case damage != nil:
		return fmt.Errorf("%s is damaged; %s", t, last)
	case n == 1:
		return fmt.Errorf("%s has a problem; %s", t, advice)
	case n > 0:
		return fmt.Errorf("%s has %d problems; %s", t, n, advice)
	}
	return nil
}

func problemCount(r *persist.Report) (n int) {
	for _, k := range r.Counts {
		n += k
	}
	return n
}

// printReport prints the report for people. The errors stand in the verdict.
func printReport(w io.Writer, t target, r *persist.Report, damage, failed error) error {
	if damage != nil {
		if _, err := fmt.Fprintf(w, "damaged: %s\n", cli.Printable(damage.Error())); err != nil {
			return err
		}
	}
	lines := make([][]string, 0, len(r.Pods))
	for _, p := range r.Pods {
		lines = append(lines, []string{p.Pod, strconv.Itoa(p.Records), strconv.Itoa(p.Rows), strconv.Itoa(p.Changes), bytesText(p.Bytes)})
	}
	if err := cli.PrintTable(w, []string{"POD", "RECORDS", "ROWS", "CHANGES", "DATA"}, lines); err != nil {
		return err
	}
	position := fmt.Sprintf("position %d", r.Position)
	if r.Trimmed > 0 {
		position += fmt.Sprintf("; history was dropped through %d", r.Trimmed)
	}
	n := problemCount(r)
	if n == 0 && damage == nil && failed == nil {
		_, err := fmt.Fprintf(w, "%s: everything can be read (%s)\n", t, position)
		return err
	}
	if _, err := fmt.Fprintf(w, "%s: %d problems (%s)\n", t, n, position); err != nil {
		return err
	}
	return printProblems(w, r.Problems, n)
}

// printProblems prints the first of n problems, a line each.
func printProblems(w io.Writer, problems []persist.Problem, n int) error {
	for _, p := range problems {
		if _, err := fmt.Fprintf(w, "  %s\n", cli.Printable(problemText(&p))); err != nil {
			return err
		}
	}
	if more := n - len(problems); more > 0 {
		_, err := fmt.Fprintf(w, "  and %d more\n", more)
		return err
	}
	return nil
}

// problemText is a line about a problem. Of damage it is not always known whose
// it is.
func problemText(p *persist.Problem) string {
	if p.Kind == persist.LostPart {
		return fmt.Sprintf("%s: %v", p.Kind, p.Err)
	}
	if p.Key == (persist.Key{}) {
		return fmt.Sprintf("%s at position %d: %v", p.Kind, p.Position, p.Err)
	}
	return p.String()
}

// The report as JSON.
type (
	jsonReport struct {
		Store    string         `json:"store"`
		OK       bool           `json:"ok"`
		Damaged  string         `json:"damaged,omitempty"` // in which way the file is
		Failed   string         `json:"failed,omitempty"`  // why it was not read to its end
		Position uint64         `json:"position"`
		Trimmed  uint64         `json:"trimmed"`
		Pods     []jsonPod      `json:"pods"`
		Counts   map[string]int `json:"counts"` // of problems, by kind
		Problems []jsonProblem  `json:"problems"`
	}
	jsonPod struct {
		Pod     string `json:"pod"`
		Records int    `json:"records"`
		Rows    int    `json:"rows"`
		Changes int    `json:"changes"`
		Bytes   int64  `json:"bytes"`
	}
	jsonProblem struct {
		Kind     string `json:"kind"`
		Pod      string `json:"pod"`
		Name     string `json:"name"`
		Row      string `json:"row,omitempty"`
		Position uint64 `json:"position,omitempty"`
		Error    string `json:"error"`
	}
)

func printReportJSON(w io.Writer, t target, r *persist.Report, damage, failed error) error {
	j := jsonReport{
		Store: t.String(), OK: r.OK() && damage == nil && failed == nil, Position: r.Position, Trimmed: r.Trimmed,
		Pods: []jsonPod{}, Counts: map[string]int{}, Problems: []jsonProblem{},
	}
	if damage != nil {
		j.Damaged = damage.Error()
	}
	if failed != nil {
		j.Failed = failed.Error()
	}
	for _, p := range r.Pods {
		j.Pods = append(j.Pods, jsonPod(p))
	}
	for kind, n := range r.Counts {
		j.Counts[string(kind)] = n
	}
	for _, p := range r.Problems {
		j.Problems = append(j.Problems, jsonProblem{
			Kind: string(p.Kind), Pod: p.Key.Pod, Name: p.Key.Name, Row: p.Row, Position: p.Position, Error: p.Err.Error(),
		})
	}
	return cli.PrintJSON(w, j)
}
