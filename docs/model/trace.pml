/*
 * Included by plain.pml with -DTRACE. A visible step happens only if it is the next step of a trace. Hidden steps and
 * time may come between visible steps. The file traces has the traces: four bytes for each step, and four zeros at the
 * end. The file verdicts gets a number for each trace: -1 if the model accepts it, the index of the first step that the
 * model rejects, -2 if the trace was not searched because a later one was rejected, or -3 if the search took too long.
 */
#define sent 1
#define executed 2
#define granted 3
#define refused 4
#define gave_up 5
#define received 6
#define gap 7
#define listening 8
#define renewing 9
#define renewed 10
#define releasing 11
#define released 12
#define lost 13
#define deleted 14
#define confirmed 15
#define not_sent 16	/* an attempt that was not sent; not a step of the model */

c_decl {
	static unsigned char text[1 << 24], *steps[1 << 16];
	static int count, far[1 << 16], moves;	/* far: the verdicts */
	\#define GOES_ON goes_on()	/* Spin rejects a call in c_expr */
}
short chosen, at;
byte what_, caller_, number_, value_;	/* the next step */
byte busy;	/* set of callers that must make an attempt before time passes */
byte num[OWNERS], last[CALLERS];	/* the owners' numbers */
bool lose_acquire[CALLERS], lose_renew[CALLERS];	/* the caller will not get the last call's reply */

c_code {
	static void report(void)
	{
		FILE *f = fopen("verdicts", "w");
		for (int i = 0; i < count; i++)
			fprintf(f, "%d\n", far[i]);
		fclose(f);
	}

	static void load(void)
	{
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
	static void look(void)
	{
		unsigned char *s = steps[now.chosen] + 4 * now.at;
		int *verdict = &far[now.chosen];
		for (; *s == not_sent; s += 4, now.at++)
			now.busy &= ~(1 << s[1]);
		now.what_ = s[0]; now.caller_ = s[1]; now.number_ = s[2]; now.value_ = s[3];
		if (!now.at) {
			moves = 0;
			if (now.chosen + 1 < count && verdict[1] != -1 && verdict[1] != -3)
				*verdict = -2;
		}
		if (*verdict >= 0)
			*verdict = !*s ? -1 : now.at > *verdict ? now.at : *verdict;
	}

	static void pass(void)
	{
		if (now.what_ == received || now.what_ == gap || now.what_ == listening)
			now.busy |= 1 << now.caller_;
		else if (now.what_ == sent || now.what_ == gave_up)
			now.busy &= ~(1 << now.caller_);
		now.at++;
		look();
	}

	/* Most traces take a few thousand moves. */
	static int goes_on(void)
	{
		if (far[now.chosen] >= 0 && moves++ == 2000000)
			far[now.chosen] = -3;
		return far[now.chosen] >= 0;
	}
}

#define EV_CALLER(condition, step, c) (condition) && what_ == step && caller_ == c -> c_code { pass(); }
#define EV(condition, step, o, value) (condition) && what_ == step && caller_ == CALLER(o) && number_ == num[o] && (step == renewing || value_ == value) -> \
	lose_renew[CALLER(o)] = (step == renewing -> value_ : lose_renew[CALLER(o)]); c_code { pass(); }
#define EV_SENT(o) what_ == sent && caller_ == CALLER(o) && (number_ == num[o] || num[o] == 0 && number_ > last[CALLER(o)]) -> \
	num[o] = number_; last[CALLER(o)] = number_; lose_acquire[CALLER(o)] = value_; c_code { pass(); }
/* Hidden steps of a caller commute with other callers' steps and with time, so they can wait until its next step. */
#define HIDES(c) (what_ && caller_ == c)
#define LOSES(call, c) lose_##call[c]
#define TRACED true
#define OVERDUE(c) (hold[c] && left[c] == 0)
#define TIME_PASSES (!busy && (what_ == lost || what_ == renewing || what_ == executed && value_) \
	&& !OVERDUE(0) && !OVERDUE(1) && !OVERDUE(2))
#define FRESH(o) num[o] = 0
#define RECEIVED(c) :: atomic { EV_CALLER(link[c] == MESSAGE && !(busy >> c & 1), received, c); link[c] = LISTENS; goto listen } \
	:: atomic { EV_CALLER(!(busy >> c & 1), gap, c); goto listen }
#define GAP(c) :: atomic { EV_CALLER(true, gap, c); goto listen }
#define BEGIN c_code { load(); }; do :: c_expr { now.chosen + 1 < count } -> chosen++ :: break od; c_code { look(); }

never { do :: c_expr { GOES_ON } od }
