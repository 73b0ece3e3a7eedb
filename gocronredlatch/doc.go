// Package gocronredlatch lets several schedulers of gocron do each job once.
//
//	locker, err := gocronredlatch.NewLocker(client, gocronredlatch.LockerConfig{Period: time.Hour})
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	_, err = scheduler.NewJob(gocron.CronJob("0 * * * *", false),
//		locker.Task(report), gocron.WithName("report"))
//
// All processes schedule the same jobs. With a [Locker] each run of a job takes the lock of the
// job's name, and the schedulers share the jobs. With an [Elector] one process leads and does all of
// them: for jobs that share what is in its memory.
//
// # The life of a run
//
//	tick ──Lock──▶ the lock of the name, renewed ──▶ with Period or AtLeast: the mark of this period
//	                 │ held: another does the job      │ there already: it was done in this period
//	                 ▼                                 ▼
//	               skipped                           skipped, the lock is freed
//
//	both taken ──▶ the task runs ──▶ it returns: the lock is freed, the mark stays for its time
//	                 │
//	                 └─ the lock is lost: the context of the task ends with redlatch.ErrLost
//
// Gocron tells a skipped run to AfterLockError: errors.Is of redlatch.ErrNotAcquired says that
// another process does the job or has done it.
//
// # What it promises
//
// No two processes are in one job at a time, as long as the task heeds its context: that of a holder
// which is cut off, or was stopped for longer than its lease, has ended before another process can
// get the lock. Gocron gives a job one context for all of its runs, which nothing can end without
// the job. So tasks are made with [Locker.Task] or [Elector.Task], which give the task a context of
// the run.
//
// A process that dies in a run keeps the job from others until its lease is over: 30 seconds, or what
// redlatch.WithWatchdogTimeout says. That should be less than half the time between two runs. The
// run is not done again: at most once is not at least once.
//
// # Clocks
//
// The clocks of machines differ, and so do the times of their ticks. When a job is done sooner than
// the last tick has come, the lock alone does not keep that one from doing it again. LockerConfig.Period
// and AtLeast, and ElectorConfig.Skew do.
package gocronredlatch
