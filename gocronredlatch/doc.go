// Package gocronredlatch lets several processes schedule the same gocron jobs and runs each job
// once.
//
//	locker, err := gocronredlatch.NewLocker(client, gocronredlatch.LockerConfig{Period: time.Hour})
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	_, err = scheduler.NewJob(gocron.CronJob("0 * * * *", false),
//		locker.Task(report), gocron.WithName("report"))
//
// With a [Locker], the processes share the jobs. With an [Elector], one process leads and runs all
// jobs; use it for jobs that share state in that process's memory. gocron skips a run that another
// process has taken. With a Locker, it also calls AfterLockError with redlatch.ErrNotAcquired.
//
// No two processes run a job at the same time if the task respects its context, which ends before
// another process can get the lock, even after a network failure or a pause. Create tasks with
// [Locker.Task] or [Elector.Task], because the context that gocron passes to a job does not end
// when the lock is lost.
//
// A job runs at most once per tick. If a process dies, its run is not repeated, and the job is
// blocked until the lease expires. If clocks differ, set LockerConfig.Period or AtLeast, or
// ElectorConfig.Skew; otherwise a job that ends before another process's tick runs again.
package gocronredlatch
