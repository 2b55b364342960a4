package killtest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// breaks are changes to package entity that TestTransfersOverKills must find.
var breaks = map[string]struct {
	file string
	edit [2]string
}{
	"the receiver does not note what it took": {"entity/turn.go", [2]string{
		"rows = append(rows, a.mail.inbox.take(m.once))",
		"a.mail.inbox.take(m.once)",
	}},
	"the sender does not keep what it sends": {"entity/outbox.go", [2]string{
		"rows = append(rows, persist.RowOp{Kind: OutboxRows, ID: p.id(), Value: p.encode()})",
		"",
	}},
	"a message is forgotten before it is acknowledged": {"entity/outbox.go", [2]string{
		"\t\tl.underWay++\n",
		"\t\tl.underWay++\n\t\ta.mail.outbox.done = append(a.mail.outbox.done, persist.RowOp{Kind: OutboxRows, ID: p.id(), Delete: true})\n",
	}},
	"a message is sent before the commit": {"entity/turn.go", [2]string{
		"rows := a.mail.outbox.add(c.parcels)\n",
		"rows := a.mail.outbox.add(c.parcels)\n\tfor _, p := range c.parcels {\n\t\ta.dispatchParcel(c.actor, p)\n\t}\n",
	}},
	"numbers are given twice": {"entity/outbox.go", [2]string{
		"return append(rows, persist.RowOp{Kind: numberRows, ID: lastNumber, Value: binary.AppendUvarint(nil, o.last)})",
		"return append(rows, persist.RowOp{Kind: numberRows, ID: lastNumber, Value: binary.AppendUvarint(nil, 0)})",
	}},
	"an answer is not kept": {"entity/answers.go", [2]string{
		"return append(rows, persist.RowOp{Kind: answerRows, ID: r.ID, Value: r.encode()})",
		"_ = r.encode()\n\treturn rows",
	}},
	"a rejection is not kept": {"entity/turn.go", [2]string{
		"if a.head.revision > 0 && (m.once == nil || !later(e.err)) {",
		"if a.head.revision > 0 && m.once != nil && !later(e.err) {",
	}},
}

// TestBreaksFit: what the long form changes is still there to be changed.
func TestBreaksFit(t *testing.T) {
	for name, b := range breaks {
		t.Run(name, func(t *testing.T) { overlay(t, t.TempDir(), b.file, [][2]string{b.edit}) })
	}
	for name, b := range queueBreaks {
		t.Run(name, func(t *testing.T) { overlay(t, t.TempDir(), b.file, [][2]string{b.edit}) })
	}
}

// TestTransfersFindWhatIsBroken: the test of the transfers finds each of these
// faults. It compiles a lot, so it is part of the long form alone.
func TestTransfersFindWhatIsBroken(t *testing.T) {
	if os.Getenv("TWINSRV_KILLS") == "" {
		t.Skip("part of the long form: set TWINSRV_KILLS to the kills in each test, for example 200")
	}
	for name, b := range breaks {
		t.Run(name, func(t *testing.T) {
			binary := compile(t, []string{"test", "-c"}, "./internal/killtest", b.file, [][2]string{b.edit})
			br := branch{Store: "bolt", Where: place(t, "bolt"), Kinds: []string{tills, ledgers, accounts}}
			kills, wrong := transfers(t, binary, br, 60, 1) // it takes one to three
			require.NotEmpty(t, wrong, "%d kills found nothing", kills)
			t.Logf("found after %d kills: %s", kills, wrong[0])
		})
	}
}
