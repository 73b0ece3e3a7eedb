/*
 * Included by plain.pml with -DTRACE. A visible step happens only if it is the next step of a trace. Hidden steps and
 * time may come between visible steps. The file traces has the traces: four bytes for each step, and four zeros at the
 * end. The file verdicts gets a number for each trace: -1 if the model accepts it, or the index of the first step that
 * the model rejects. The search starts with the last trace and ends with the first that is rejected.
 */
#define OWN 3
#define LEASE 3
mtype = { not_sent, confirmed, deleted, lost, released, releasing, renewed, renewing, listening, gap, received, gave_up,
	refused, granted, executed, sent };	/* 16 to 1; an attempt that was not sent is not a step of the model */

c_decl {
	static unsigned char text[1 << 24], *steps[1 << 16];
	static int count, far[1 << 16];	/* far: the verdicts */
}
short chosen, at;
byte what_, caller_, number_, value_;	/* the next step */
byte busy;	/* set of callers that must make an attempt before time passes */
byte num[OWNERS], last[CALLERS];	/* the owners' numbers */
bool lose_acquire[CALLERS], lose_renew[CALLERS];	/* the caller will not get the last call's reply */

c_code {
	static void report(void) {
		FILE *f = fopen("verdicts", "w");
		for (int i = 0; i < count; i++)
			fprintf(f, "%d\n", far[i]);
		fclose(f);
	}

	static void load(void) {
		FILE *f = fopen("traces", "rb");
		unsigned char *s = text, *end = text + fread(text, 1, sizeof text, f);
		for (; s < end; s += 4) {
			steps[count++] = s;
			while (*s)
				s += 4;
		}
		atexit(report);
	}

	/* Finds the next step of the chosen trace. */
	static void look(void) {
		unsigned char *s = steps[now.chosen] + 4 * now.at;
		int *verdict = &far[now.chosen];
		now.what_ = s[0]; now.caller_ = s[1]; now.number_ = s[2]; now.value_ = s[3];
		if (!now.at && now.chosen + 1 < count && verdict[1] != -1)
			exit(0);
		if (*verdict >= 0)
			*verdict = !*s ? -1 : now.at > *verdict ? now.at : *verdict;
	}
}

inline pass() {
	if
	:: what_ == received || what_ == gap || what_ == listening -> busy = busy | 1 << caller_
	:: what_ == sent || what_ == not_sent || what_ == gave_up -> busy = busy & ~(1 << caller_)
	:: else
	fi;
	c_code { now.at++; look(); }
}

#define EV_CALLER(condition, step, c) (condition) && what_ == step && caller_ == c -> pass()
#define EV(condition, step, o, value) (condition) && what_ == step && caller_ == CALLER(o) && number_ == num[o] && (step == renewing || value_ == value) -> \
	lose_renew[CALLER(o)] = (step == renewing -> value_ : lose_renew[CALLER(o)]); pass()
#define EV_SENT(o) what_ == sent && caller_ == CALLER(o) && (number_ == num[o] || num[o] == 0 && number_ > last[CALLER(o)]) -> \
	num[o] = number_; last[CALLER(o)] = number_; lose_acquire[CALLER(o)] = value_; pass()
/* Hidden steps of a caller commute with other callers' steps and with time, so they can wait until its next step. */
#define HIDES(c) (what_ && caller_ == c)
#define LOSES(call, c) lose_##call[c]
#define TRACED true
#define OVERDUE(c) (hold[c] && left[c] == 0)
#define TIME_PASSES (!busy && (what_ == lost || what_ == renewing || what_ == executed && value_) \
	&& !OVERDUE(0) && !OVERDUE(1) && !OVERDUE(2))
#define FRESH(o) num[o] = 0
#define AWAITS(c) (!(busy >> c & 1))	/* also after an attempt that was not sent */
#define GAP(c) :: atomic { EV_CALLER(AWAITS(c), gap, c); asleep[c] = false }
#define BEGIN c_code { load(); }; do :: c_expr { now.chosen + 1 < count } -> chosen++ :: break od; c_code { look(); }
#define NOT_SENT :: atomic { EV_CALLER(true, not_sent, caller_) }

never { do :: c_expr { far[now.chosen] >= 0 } od }
