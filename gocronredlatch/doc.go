// Package gocronredlatch makes several gocron schedulers do each job once.
//
//	locker, err := gocronredlatch.NewLocker(client, gocronredlatch.LockerConfig{Period: time.Hour})
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	_, err = scheduler.NewJob(gocron.CronJob("0 * * * *", false),
//		locker.Task(report), gocron.WithName("report"))
//
// All processes schedule the same jobs. With a [Locker], each run takes the lock of the job's name, and
// the schedulers share the jobs. With an [Elector], one process leads and does all of them: for jobs that
// share state in its memory.
//
// At a tick a Locker takes the lock, which is renewed during the run, and with Period or AtLeast also a
// mark, which stays for its time after the lock is released. If another process has the lock or the mark,
// gocron skips the run and calls AfterLockError with redlatch.ErrNotAcquired.
//
// # Guarantees
//
// No two processes run one job at a time if the task respects its context, which ends before another
// process can get the lock, also after a network failure or a pause. gocron gives a job one context for all
// runs, so create tasks with [Locker.Task] or [Elector.Task], which give the task a context of the run. It
// ends with cause redlatch.ErrLost if the lock is lost.
//
// A process that dies in a run blocks the job until its lease expires: 30 seconds, or
// redlatch.WithWatchdogTimeout, which should be less than half the time between two runs. The run is not
// repeated: a job runs at most once per tick, not at least once.
//
// If clocks differ and a job ends before the last process's tick, the lock alone does not prevent a second
// run. Use LockerConfig.Period or AtLeast, or ElectorConfig.Skew.
package gocronredlatch
