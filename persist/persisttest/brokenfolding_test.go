package persisttest_test

import (
	"context"
	"slices"

	"github.com/twinsrv/twinsrv/persist"
)

// foldingWrongs names each way of folding wrongly, as wrongs does.
func foldingWrongs() map[string][]string {
	const taken, removed = "a fold takes everything as it is, again and again", "a fold deletes with rows, and makes again in the same batch"
	return map[string][]string{
		"files what it logs":             {"changes are in the log before they are filed"},
		"files nothing":                  {taken, "what was filed is not filed twice", "folding model"},
		"files twice":                    {"what was filed is not filed twice", "folding model"},
		"folds no deletion":              {removed, "folding model"},
		"deletes behind the rest":        {removed},
		"keeps rows that are gone":       {"a fold removes rows before it writes others", "folding model"},
		"removes rows behind the rest":   {"a fold removes rows before it writes others"},
		"ignores the position of a fold": {taken, "folding model"},
		"forgets its mark":               {"a mark is kept, and the zero mark is none"},
		"marks what has no mark":         {"a mark is kept, and the zero mark is none"},
		"folds a part of the invalid":    {"a fold refuses what must not be stored, and takes nothing"},
		"gives heads in reverse":         {"heads are what is stored, in the order of the keys", "folding model"},
		"gives heads of the deleted":     {"heads are what is stored, in the order of the keys"},
		"hides damage in heads":          {"an unreadable record is its head's error, and no other's"},
		"folds when it is closed":        {"a closed store folds nothing"},
	}
}

func (b *broken) Fold(ctx context.Context, f persist.Fold) error {
	then := persist.Fold{}
	switch b.how {
	case "files what it logs":
		f.Filed = f.Changes
	case "files nothing":
		f.Filed = nil
	case "files twice":
		for _, c := range f.Filed {
			b.twice = append(b.twice, c.Position)
		}
	case "folds no deletion":
		f.Deleted = nil
	case "deletes behind the rest":
		f.Deleted, then.Deleted = nil, f.Deleted
	case "keeps rows that are gone":
		f.RowsGone = nil
	case "removes rows behind the rest":
		f.RowsGone, then.RowsGone = nil, f.RowsGone
	case "ignores the position of a fold":
		f.Position = 0
	case "forgets its mark":
		f.Mark = persist.Mark{}
	case "marks what has no mark":
		if f.Mark == (persist.Mark{}) {
			f.Mark.Log = 1
		}
	}
	err := b.Memory.Fold(ctx, f)
	switch {
	case err == nil:
		return b.Memory.Fold(ctx, then)
	case b.how == "folds a part of the invalid":
		_ = b.Memory.Fold(ctx, persist.Fold{Batch: persist.Batch{Records: f.Records}})
	case b.how == "folds when it is closed":
		return nil
	}
	return err
}

func (b *broken) Heads(ctx context.Context, keys []persist.Key) ([]persist.Head, error) {
	heads, err := b.Memory.Heads(ctx, keys)
	if b.how == "gives heads in reverse" {
		slices.Reverse(heads)
	}
	for i := range heads {
		switch b.how {
		case "hides damage in heads":
			heads[i].Err = nil
		case "gives heads of the deleted":
			heads[i].Exists = heads[i].Exists || slices.Contains(b.deleted, keys[i])
		}
	}
	return heads, err
}

// repeated gives changes that were filed twice twice.
func (b *broken) repeated(changes []persist.Change) (out []persist.Change) {
	for _, c := range changes {
		out = append(out, c)
		first := slices.Index(b.twice, c.Position)
		if first >= 0 && slices.Contains(b.twice[first+1:], c.Position) {
			out = append(out, c)
		}
	}
	return out
}
