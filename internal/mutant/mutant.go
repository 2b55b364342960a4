package mutant

// Variable is the environment variable that chooses a fault, in programs that
// are built with the tag "mutants".
const Variable = "TWINSRV_MUTANT"

// Name is what a fault is chosen by.
type Name string

// The faults. Each breaks the promise of docs/architecture.md that stands behind
// it.
const (
	// In package actor.

	// PoisonOvertakes: a PoisonPill passes the messages that wait in the mailbox
	// (G1).
	PoisonOvertakes Name = "poison-overtakes"
	// OvertakeInBacklog: the second message of a backlog of four or more comes
	// first (G1).
	OvertakeInBacklog Name = "overtake-in-backlog"
	// StashReversed: UnstashAll brings the messages back in the reverse order
	// (G1).
	StashReversed Name = "stash-reversed"
	// DropStashOnRestart: a restart loses what was stashed, or waited for a
	// delegate (G7).
	DropStashOnRestart Name = "drop-stash-on-restart"
	// DropQueuedOnRestart: a restart loses the message that waited first (G7).
	DropQueuedOnRestart Name = "drop-queued-on-restart"
	// RetireNotEmpty: an actor retires though messages wait in its mailbox (G1).
	RetireNotEmpty Name = "retire-not-empty"
	// AskNeverEnds: an ask that becomes a dead letter gets no answer (G7).
	AskNeverEnds Name = "ask-never-ends"
	// FullDropsSilently: a full mailbox loses a message without an error or a
	// dead letter (G7).
	FullDropsSilently Name = "full-drops-silently"
	// TerminatedLost: watchers are not told that an actor has stopped (G7).
	TerminatedLost Name = "terminated-lost"
	// AllForOneOnlyOne: an all-for-one strategy restarts or stops the failed
	// child alone (G8).
	AllForOneOnlyOne Name = "all-for-one-only-one"
	// BudgetNeverEnds: a child that keeps failing is restarted for ever (G8).
	BudgetNeverEnds Name = "budget-never-ends"
	// PipedReachesNext: what an actor piped to itself reaches the next one of
	// its name (G6).
	PipedReachesNext Name = "piped-reaches-next"
	// TimersOutliveStop: timers go on after the actor that set them stopped or
	// restarted (G6).
	TimersOutliveStop Name = "timers-outlive-stop"

	// In package persist.

	// AckBeforeSync: the committer tells the outcome of a change before the
	// store has it (G2).
	AckBeforeSync Name = "ack-before-sync"
	// UnknownAsUndone: a commit of unknown outcome is reported as one that did
	// nothing (G7).
	UnknownAsUndone Name = "unknown-as-undone"
	// ConflictSpreads: a unit's conflict is reported to its neighbour in the
	// group, too (G8).
	ConflictSpreads Name = "conflict-spreads"
	// BadUnitFailsGroup: one unit that the store refuses for its data fails the
	// whole group (G8).
	BadUnitFailsGroup Name = "bad-unit-fails-group"
	// CursorBeforeTable: a projection's cursor is committed before what Apply
	// makes of the changes (G5).
	CursorBeforeTable Name = "cursor-before-table"
	// ProjectionSkipsOne: a projection goes on one position too far after its
	// cursor was read (G5).
	ProjectionSkipsOne Name = "projection-skips-one"
	// JobAcceptedEarly: a job of a durable queue is accepted before its row is
	// durable (G2).
	JobAcceptedEarly Name = "job-accepted-early"
	// JobAttemptUncounted: an attempt at a job begins before it is counted in the
	// store (G2).
	JobAttemptUncounted Name = "job-attempt-uncounted"
	// JobRemovalForgotten: the removal of a job that is done is not tried again
	// when the store fails (G7).
	JobRemovalForgotten Name = "job-removal-forgotten"
	// JobLastAttemptForgotten: a job that a process has left at its last attempt
	// is tried again (G8).
	JobLastAttemptForgotten Name = "job-last-attempt-forgotten"
	// JobsOutOfOrder: the job that came last begins first (G1).
	JobsOutOfOrder Name = "jobs-out-of-order"

	// In package persist/commitlog.

	// LogAckUnsynced: the commit log tells outcomes without having synced (G2).
	LogAckUnsynced Name = "log-ack-unsynced"
	// LogFreesUnfolded: a segment of the commit log is free before all of it is
	// folded (G5).
	LogFreesUnfolded Name = "log-frees-unfolded"
	// LogForgetsDeletions: deletions are not folded (G6).
	LogForgetsDeletions Name = "log-forgets-deletions"
	// LogReplaysShort: after a crash the last unit of each group of the commit log
	// is not read (G5).
	LogReplaysShort Name = "log-replays-short"
	// LogHeadsStale: expected revisions are compared with what is folded, not with
	// what the commit log has (G3).
	LogHeadsStale Name = "log-heads-stale"

	// In package entity.

	// FailedHeadKept: a failed commit does not poison the activation, which goes
	// on from the state that is not durable (G3).
	FailedHeadKept Name = "failed-head-kept"
	// FailedStateKept: what a handler changed before it failed is not rolled
	// back (G3).
	FailedStateKept Name = "failed-state-kept"
	// EffectsBeforeCommit: a turn's messages and work leave before its commit
	// (G3).
	EffectsBeforeCommit Name = "effects-before-commit"
	// EffectsOfRejected: a handler that fails or rejects has its messages and
	// work released all the same (G3).
	EffectsOfRejected Name = "effects-of-rejected"
	// ReplyNotDetached: a reply shares memory with the state, and so shows later
	// turns (G3).
	ReplyNotDetached Name = "reply-not-detached"
	// AnswerBeforeCommit: a change is answered before its commit (G2).
	AnswerBeforeCommit Name = "answer-before-commit"
	// ViewBeforeCommit: readers see a change before its commit (G2).
	ViewBeforeCommit Name = "view-before-commit"
	// QueryUndurable: a query is answered from a state that is not durable (G2).
	QueryUndurable Name = "query-undurable"
	// FailedInitCreates: a failed Init makes a blank entity (G4).
	FailedInitCreates Name = "failed-init-creates"
	// CreationNotHeld: while Init runs for the first message of a burst, the
	// next one begins another Init (G4).
	CreationNotHeld Name = "creation-not-held"
	// RefusedHoldsMailbox: a first message of a type with Init that creates
	// nothing leaves those behind it waiting for ever (G4).
	RefusedHoldsMailbox Name = "refused-holds-mailbox"
	// RefusedSlotStays: a refused first message leaves an activation of an
	// absent entity behind (G4).
	RefusedSlotStays Name = "refused-slot-stays"
	// SettleNotAwaited: an activation reads the store while units of the one
	// before it are under way (G5).
	SettleNotAwaited Name = "settle-not-awaited"
	// ReplayRepeatsEvent: a replay applies the last event of the snapshot again
	// (G5).
	ReplayRepeatsEvent Name = "replay-repeats-event"
	// ReplaySkipsEvent: a replay leaves out the first event behind the snapshot
	// (G5).
	ReplaySkipsEvent Name = "replay-skips-event"
	// UnreadableBlank: an entity whose record cannot be read is taken for an
	// absent one (G5).
	UnreadableBlank Name = "unreadable-blank"
	// ReuseLife: each creation begins life 1 (G6).
	ReuseLife Name = "reuse-life"
	// DeleteAckedEarly: a deletion is acknowledged before it is durable (G6).
	DeleteAckedEarly Name = "delete-acked-early"
	// LateReachesNextLife: a message for an earlier life is handled by the next
	// one (G6).
	LateReachesNextLife Name = "late-reaches-next-life"
	// LateResultRevives: the result of PipeTo reaches any life, and creates the
	// entity when it is gone (G6).
	LateResultRevives Name = "late-result-revives"
	// AbandonSilent: an entity that is stopped does not answer the turns that
	// wait for their commits (G7).
	AbandonSilent Name = "abandon-silent"
	// ConditionIgnored: a message is handled whatever its condition says (G2).
	ConditionIgnored Name = "condition-ignored"
	// ConditionIgnoresLife: a condition looks at the revision and not at the
	// life (G6).
	ConditionIgnoresLife Name = "condition-ignores-life"
	// PassivateInFlight: an entity leaves memory while commits of its turns are
	// under way (G3).
	PassivateInFlight Name = "passivate-in-flight"
	// PassivateLosesAsync: an asynchronous entity leaves memory without writing
	// its last state (G5).
	PassivateLosesAsync Name = "passivate-loses-async"
	// AsyncReservesTooFew: an asynchronous entity reserves one revision and
	// gives out a thousand, so that one is given twice (G5).
	AsyncReservesTooFew Name = "async-reserves-too-few"
	// AsyncFloorForgotten: an asynchronous entity goes on from its record's
	// revision after an unclean stop, not behind what it had reserved (G5).
	AsyncFloorForgotten Name = "async-floor-forgotten"
	// AsyncRowsNotAwaited: an asynchronous entity sends once, and takes what was
	// sent once, before that is durable (G2).
	AsyncRowsNotAwaited Name = "async-rows-not-awaited"
	// OnceHandledTwice: a message of SendOnce that was taken before is handled
	// again (G3).
	OnceHandledTwice Name = "once-handled-twice"
	// OnceCursorNotKept: the cursor of SendOnce is not committed with what the
	// message changed (G5).
	OnceCursorNotKept Name = "once-cursor-not-kept"
	// OnceAckedEarly: a message of SendOnce is acknowledged before the
	// receiver's commit (G2).
	OnceAckedEarly Name = "once-acked-early"
	// OnceOrderLost: a message of SendOnce is taken before one that was sent
	// before it and was refused for the time being (G1).
	OnceOrderLost Name = "once-order-lost"
	// OnceNumbersReused: after a recovery messages of SendOnce get numbers again
	// that were given, and so are taken for known (G5).
	OnceNumbersReused Name = "once-numbers-reused"
	// OutboxNotResumed: a recovered entity does not send what its outbox holds
	// (G5).
	OutboxNotResumed Name = "outbox-not-resumed"
	// RepeatHandledAgain: a message with an id that was answered is handled
	// again (G2).
	RepeatHandledAgain Name = "repeat-handled-again"
	// AnswersNotKept: the first answers to messages with ids are not committed
	// (G5).
	AnswersNotKept Name = "answers-not-kept"

	// ReminderStays: the turn that a reminder led to leaves its row as it was
	// (G3).
	ReminderStays Name = "reminder-stays"
	// ReminderEarly: a reminder is handled before it is due (G3).
	ReminderEarly Name = "reminder-early"
	// AdmitForgetsAnswers: a message with an id that was answered is said to be refused, as if it was new (G3).
	AdmitForgetsAnswers Name = "admit-forgets-answers"
	// PatchHalfApplied: a JSON patch ends at the first operation that cannot be
	// done, and what is before it stays (G3).
	PatchHalfApplied Name = "patch-half-applied"
	// SchemaIgnored: a change of a document that exists is not judged by the
	// schema (G3).
	SchemaIgnored Name = "schema-ignored"

	// In package pod.

	// ClaimRefused: messages that an ending entity has left are not given to the
	// next activation (G4).
	ClaimRefused Name = "claim-refused"
	// SlotForgetsUnsettled: a new slot does not know that units of the one
	// before it are under way (G5).
	SlotForgetsUnsettled Name = "slot-forgets-unsettled"
	// OutboxesNotWoken: a pod that starts does not wake the entities that have
	// messages to deliver (G5).
	OutboxesNotWoken Name = "outboxes-not-woken"
	// OwesForgotten: an entity that ended with messages to deliver is not
	// brought back (G7).
	OwesForgotten Name = "owes-forgotten"
	// TableRowStale: the tables of queries do not see that an entity has changed
	// (G2).
	TableRowStale Name = "table-row-stale"
	// LatecomersMissed: queries over tables leave out entities that came since
	// the tables were made (G2).
	LatecomersMissed Name = "latecomers-missed"
	// CensusOfPart: a query that found all names with one beginning in memory
	// takes them for all there are (G2).
	CensusOfPart Name = "census-of-part"
	// IndexNotUpdated: an index keeps the first value that it has seen of an
	// entity (G2).
	IndexNotUpdated Name = "index-not-updated"
	// IndexTrustsStore: an index that is made takes what the store has of an
	// entity for what it shows, while that is not known (G2).
	IndexTrustsStore Name = "index-trusts-store"
	// RemindersNotRead: a pod that starts does not read its reminders (G5).
	RemindersNotRead Name = "reminders-not-read"
	// CloseLosesAsync: closing the pods does not have the entities leave memory
	// first (G5).
	CloseLosesAsync Name = "close-loses-async"
	// WatchSkipsOne: a watch that resumes leaves out the first change behind its position (G7).
	WatchSkipsOne Name = "watch-skips-one"
	// WatchGapUntold: a watch does not say that retention has dropped changes (G7).
	WatchGapUntold Name = "watch-gap-untold"
	// WatchLeavesSilently: a watch with a filter does not say that an entity left it (G7).
	WatchLeavesSilently Name = "watch-leaves-silently"
	// WatchAheadOfReads: watches show a change before the entity shows it to reads (G2).
	WatchAheadOfReads Name = "watch-ahead-of-reads"
	// WatchNeverLooks: watches are not told of what a commit of unknown outcome has written (G7).
	WatchNeverLooks Name = "watch-never-looks"
	// WatchLosesBehind: a watch that falls behind what is in memory goes on with what is (G7).
	WatchLosesBehind Name = "watch-loses-behind"
	// HistorySkipsBetweenPages: the next page of a history leaves out a change (G5).
	HistorySkipsBetweenPages Name = "history-skips-between-pages"
	// AtTakesNext: the state at a revision that was never written is that of the next one (G3).
	AtTakesNext Name = "at-takes-next"
	// StayIgnored: an entity whose passivation is paused leaves memory when it is idle (G8).
	StayIgnored Name = "stay-ignored"
	// DefinitionOutdated: documents in memory go on by a definition that another
	// one has replaced (G2).
	DefinitionOutdated Name = "definition-outdated"
)

// Mutant describes a fault.
type Mutant struct {
	Name    Name
	Breaks  string // the promise, and how
	Package string // where it is built in
}

// All returns the faults in the order of the packages, bottom-up.
func All() []Mutant {
	return []Mutant{
		{PoisonOvertakes, "G1: a PoisonPill passes the messages that wait in the mailbox", "actor"},
		{OvertakeInBacklog, "G1: the second message of a backlog of four or more comes first", "actor"},
		{StashReversed, "G1: UnstashAll brings the messages back in the reverse order", "actor"},
		{DropStashOnRestart, "G7: a restart loses what was stashed, or waited for a delegate", "actor"},
		{DropQueuedOnRestart, "G7: a restart loses the message that waited first", "actor"},
		{RetireNotEmpty, "G1: an actor retires though messages wait in its mailbox", "actor"},
		{AskNeverEnds, "G7: an ask that becomes a dead letter gets no answer", "actor"},
		{FullDropsSilently, "G7: a full mailbox loses a message without an error or a dead letter", "actor"},
		{TerminatedLost, "G7: watchers are not told that an actor has stopped", "actor"},
		{AllForOneOnlyOne, "G8: an all-for-one strategy restarts or stops the failed child alone", "actor"},
		{BudgetNeverEnds, "G8: a child that keeps failing is restarted for ever", "actor"},
		{PipedReachesNext, "G6: what an actor piped to itself reaches the next one of its name", "actor"},
		{TimersOutliveStop, "G6: timers go on after the actor that set them stopped or restarted", "actor"},
		{AckBeforeSync, "G2: the committer tells the outcome of a change before the store has it", "persist"},
		{UnknownAsUndone, "G7: a commit of unknown outcome is reported as one that did nothing", "persist"},
		{ConflictSpreads, "G8: a unit's conflict is reported to its neighbour in the group, too", "persist"},
		{BadUnitFailsGroup, "G8: one unit that the store refuses for its data fails the whole group", "persist"},
		{CursorBeforeTable, "G5: a projection's cursor is committed before what Apply makes of the changes", "persist"},
		{ProjectionSkipsOne, "G5: a projection goes on one position too far after its cursor was read", "persist"},
		{JobAcceptedEarly, "G2: a job of a durable queue is accepted before its row is durable", "persist"},
		{JobAttemptUncounted, "G2: an attempt at a job begins before it is counted in the store", "persist"},
		{JobRemovalForgotten, "G7: the removal of a job that is done is not tried again when the store fails", "persist"},
		{JobLastAttemptForgotten, "G8: a job that a process has left at its last attempt is tried again", "persist"},
		{JobsOutOfOrder, "G1: of the jobs that wait in a durable queue the last one begins first", "persist"},
		{LogAckUnsynced, "G2: the commit log tells outcomes without having synced", "persist/commitlog"},
		{LogFreesUnfolded, "G5: a segment of the commit log is free before all of it is folded", "persist/commitlog"},
		{LogForgetsDeletions, "G6: the commit log does not fold deletions", "persist/commitlog"},
		{LogReplaysShort, "G5: after a crash the last unit of each group of the commit log is not read", "persist/commitlog"},
		{LogHeadsStale, "G3: expected revisions are compared with what is folded, not with what the commit log has", "persist/commitlog"},
		{FailedHeadKept, "G3: a failed commit does not poison the activation, which goes on from the state that is not durable", "entity"},
		{FailedStateKept, "G3: what a handler changed before it failed is not rolled back", "entity"},
		{EffectsBeforeCommit, "G3: a turn's messages and work leave before its commit", "entity"},
		{EffectsOfRejected, "G3: a handler that fails or rejects has its messages and work released all the same", "entity"},
		{ReplyNotDetached, "G3: a reply shares memory with the state, and so shows later turns", "entity"},
		{AnswerBeforeCommit, "G2: a change is answered before its commit", "entity"},
		{ViewBeforeCommit, "G2: readers see a change before its commit", "entity"},
		{QueryUndurable, "G2: a query is answered from a state that is not durable", "entity"},
		{FailedInitCreates, "G4: a failed Init makes a blank entity", "entity"},
		{CreationNotHeld, "G4: while Init runs for the first message of a burst, the next one begins another Init", "entity"},
		{RefusedHoldsMailbox, "G4: a first message of a type with Init that creates nothing leaves those behind it waiting for ever", "entity"},
		{RefusedSlotStays, "G4: a refused first message leaves an activation of an absent entity behind", "entity"},
		{SettleNotAwaited, "G5: an activation reads the store while units of the one before it are under way", "entity"},
		{ReplayRepeatsEvent, "G5: a replay applies the last event of the snapshot again", "entity"},
		{ReplaySkipsEvent, "G5: a replay leaves out the first event behind the snapshot", "entity"},
		{UnreadableBlank, "G5: an entity whose record cannot be read is taken for an absent one", "entity"},
		{ReuseLife, "G6: each creation begins life 1", "entity"},
		{DeleteAckedEarly, "G6: a deletion is acknowledged before it is durable", "entity"},
		{LateReachesNextLife, "G6: a message for an earlier life is handled by the next one", "entity"},
		{LateResultRevives, "G6: the result of PipeTo reaches any life, and creates the entity when it is gone", "entity"},
		{AbandonSilent, "G7: an entity that is stopped does not answer the turns that wait for their commits", "entity"},
		{ConditionIgnored, "G2: a message is handled whatever its condition says", "entity"},
		{ConditionIgnoresLife, "G6: a condition looks at the revision and not at the life", "entity"},
		{PassivateInFlight, "G3: an entity leaves memory while commits of its turns are under way", "entity"},
		{PassivateLosesAsync, "G5: an asynchronous entity leaves memory without writing its last state", "entity"},
		{AsyncReservesTooFew, "G5: an asynchronous entity reserves one revision and gives out a thousand, so that one is given twice", "entity"},
		{AsyncFloorForgotten, "G5: an asynchronous entity goes on from its record's revision after an unclean stop, not behind what it had reserved", "entity"},
		{AsyncRowsNotAwaited, "G2: an asynchronous entity sends once, and takes what was sent once, before that is durable", "entity"},
		{OnceHandledTwice, "G3: a message of SendOnce that was taken before is handled again", "entity"},
		{OnceCursorNotKept, "G5: the cursor of SendOnce is not committed with what the message changed", "entity"},
		{OnceAckedEarly, "G2: a message of SendOnce is acknowledged before the receiver's commit", "entity"},
		{OnceOrderLost, "G1: a message of SendOnce is taken before one that was sent before it and was refused for the time being", "entity"},
		{OnceNumbersReused, "G5: after a recovery messages of SendOnce get numbers again that were given, and so are taken for known", "entity"},
		{OutboxNotResumed, "G5: a recovered entity does not send what its outbox holds", "entity"},
		{RepeatHandledAgain, "G2: a message with an id that was answered is handled again", "entity"},
		{AnswersNotKept, "G5: the first answers to messages with ids are not committed", "entity"},
		{ReminderStays, "G3: the turn that a reminder led to leaves its row as it was", "entity"},
		{ReminderEarly, "G3: a reminder is handled before it is due", "entity"},
		{AdmitForgetsAnswers, "G3: a message with an id that was answered is said to be refused, as if it was new", "entity"},
		{PatchHalfApplied, "G3: a JSON patch ends at the first operation that cannot be done, and what is before it stays", "entity"},
		{SchemaIgnored, "G3: a change of a document that exists is not judged by the schema", "entity"},
		{ClaimRefused, "G4: messages that an ending entity has left are not given to the next activation", "pod"},
		{SlotForgetsUnsettled, "G5: a new slot does not know that units of the one before it are under way", "pod"},
		{OutboxesNotWoken, "G5: a pod that starts does not wake the entities that have messages to deliver", "pod"},
		{OwesForgotten, "G7: an entity that ended with messages to deliver is not brought back", "pod"},
		{TableRowStale, "G2: the tables of queries do not see that an entity has changed", "pod"},
		{LatecomersMissed, "G2: queries over tables leave out entities that came since the tables were made", "pod"},
		{CensusOfPart, "G2: a query that found all names with one beginning in memory takes them for all there are", "pod"},
		{IndexNotUpdated, "G2: an index keeps the first value that it has seen of an entity", "pod"},
		{IndexTrustsStore, "G2: an index that is made takes what the store has of an entity for what it shows, while that is not known", "pod"},
		{RemindersNotRead, "G5: a pod that starts does not read its reminders", "pod"},
		{CloseLosesAsync, "G5: closing the pods does not have the entities leave memory first", "pod"},
		{WatchSkipsOne, "G7: a watch that resumes leaves out the first change behind its position", "pod"},
		{WatchGapUntold, "G7: a watch does not say that retention has dropped changes", "pod"},
		{WatchLeavesSilently, "G7: a watch with a filter does not say that an entity left it", "pod"},
		{WatchAheadOfReads, "G2: watches show a change before the entity shows it to reads", "pod"},
		{WatchNeverLooks, "G7: watches are not told of what a commit of unknown outcome has written", "pod"},
		{WatchLosesBehind, "G7: a watch that falls behind what is in memory goes on with what is", "pod"},
		{HistorySkipsBetweenPages, "G5: the next page of a history leaves out a change", "pod"},
		{AtTakesNext, "G3: the state at a revision that was never written is that of the next one", "pod"},
		{StayIgnored, "G8: an entity whose passivation is paused leaves memory when it is idle", "pod"},
		{DefinitionOutdated, "G2: documents in memory go on by a definition that another one has replaced", "pod"},
	}
}
