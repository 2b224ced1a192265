/* A disk that forgets what was not synced.

   A program that is killed leaves behind all that it has written: the kernel
   has it, and will put it on the disk some time. A power cut leaves only what
   fsync or fdatasync has returned for. This library shows the difference. It is
   loaded into a program by LD_PRELOAD, and follows one folder of it:

   - at fsync or fdatasync of a file, what is in the file is copied;
   - at fsync of a folder, its names are: which names there are, and which file
     each of them is. A file whose name was not synced is not there, whatever is
     in it; a name whose file was not synced is an empty file;
   - what is there when the program begins is on the disk.

   Everything else is forgotten, so what this does not know (O_SYNC, msync,
   syncfs, system calls without libc) counts as not synced. Only folders are
   remembered without being asked.

   The copies are in the folder FORGETFUL_DISK:

     files/NUMBER-TIME  what was in a file: its inode, and when that was made,
                        since numbers are used again
     names/...          the folder FORGETFUL_FOLDER, of links to the above
     cut                made by whoever cuts the power: no sync returns any more
     held               made here when a sync has met that

   FORGETFUL_FOLDER must be as the kernel says it, without links.

   It is compiled where it is used, with FORGETFUL_DISK_LIBRARY. Without, this file
   is only its own text, which so comes with every program that may need it. */
#ifndef FORGETFUL_DISK_LIBRARY

#ifdef __linux__
__asm__(".section .rodata\n"
	".global forgetful_disk_text\n"
	"forgetful_disk_text:\n"
	".incbin \"" __FILE__ "\"\n"
	".byte 0\n"
	".previous");
#else
const char forgetful_disk_text[] = "#error only Linux has such a disk\n";
#endif

#else

#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char *folder, *disk;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A copy that failed would look like a sync that was never made. */
static void fatal(const char *what)
{
	fprintf(stderr, "forgetful disk: ");
	perror(what);
	abort();
}

static void path_of(char path[PATH_MAX], const char *form, ...)
{
	va_list parts;
	int size;

	va_start(parts, form);
	size = vsnprintf(path, PATH_MAX, form, parts);
	va_end(parts);
	if (size < 0 || size >= PATH_MAX)
		fatal("a path is too long");
}

static int look(int at, const char *name, int flags, struct statx *about)
{
	return statx(at, name, flags, STATX_BASIC_STATS | STATX_BTIME, about);
}

static void copy_path(char path[PATH_MAX], const struct statx *about)
{
	path_of(path, "%s/files/%llu-%lld.%u", disk, (unsigned long long)about->stx_ino,
		(long long)about->stx_btime.tv_sec, about->stx_btime.tv_nsec);
}

static void make_empty(const char *path)
{
	int made = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (made < 0)
		fatal(path);
	close(made);
}

static void keep_file(int file, const struct statx *about)
{
	static char buffer[1 << 16];
	char path[PATH_MAX];
	struct stat kept;
	int flags = fcntl(file, F_GETFL), from = file, to;
	off_t at = 0, end = about->stx_size;

	copy_path(path, about);
	to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (flags < 0 || to < 0 || fstat(to, &kept) != 0)
		fatal(path);
	/* What is only ever appended to needs no second copy of its beginning. */
	if (flags & O_APPEND)
		at = kept.st_size < end ? kept.st_size : end;
	/* Only where it must be: closing any descriptor of a file drops the locks
	   that the process has on it, and SQLite has some. It opens for reading. */
	if ((flags & O_ACCMODE) == O_WRONLY) {
		path_of(path, "/proc/self/fd/%d", file);
		from = open(path, O_RDONLY | O_CLOEXEC);
		if (from < 0)
			fatal(path);
	}
	while (at < end) {
		size_t want = end - at < (off_t)sizeof buffer ? (size_t)(end - at) : sizeof buffer;
		ssize_t got = pread(from, buffer, want, at);

		if (got == 0)
			break;
		if (got < 0 || pwrite(to, buffer, got, at) != got)
			fatal("a copy");
		at += got;
	}
	if (ftruncate(to, at) != 0)
		fatal("a copy");
	if (from != file)
		close(from);
	close(to);
}

/* Killed in the middle of this, each name is the old one or the new one. */
static void keep_names(const char *path)
{
	char names[PATH_MAX], name[PATH_MAX], copy[PATH_MAX], fresh[PATH_MAX];
	struct statx about;
	struct dirent *entry;
	DIR *here, *kept;
	char *end;

	path_of(names, "%s/names%s", disk, path + strlen(folder));
	for (end = names + strlen(disk) + 1; (end = strchr(end, '/')); *end++ = '/') {
		*end = 0;
		mkdir(names, 0700);
	}
	mkdir(names, 0700);
	here = opendir(path);
	kept = opendir(names);
	if (!here || !kept)
		fatal(path);
	path_of(fresh, "%s/fresh", disk);
	while ((entry = readdir(here))) {
		if (look(dirfd(here), entry->d_name, AT_SYMLINK_NOFOLLOW, &about) != 0 || !S_ISREG(about.stx_mode))
			continue;
		copy_path(copy, &about);
		make_empty(copy);
		path_of(name, "%s/%s", names, entry->d_name);
		/* Left over where both were links to one file: then rename does nothing. */
		unlink(fresh);
		if (link(copy, fresh) != 0 || rename(fresh, name) != 0)
			fatal(name);
	}
	while ((entry = readdir(kept)))
		if (faccessat(dirfd(here), entry->d_name, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
			unlinkat(dirfd(kept), entry->d_name, 0);
	closedir(here);
	closedir(kept);
}

static void keep(int file)
{
	char link[PATH_MAX], path[PATH_MAX];
	struct statx about;
	size_t size = disk ? strlen(folder) : 0;
	ssize_t length;

	if (!disk)
		return;
	path_of(link, "/proc/self/fd/%d", file);
	length = readlink(link, path, sizeof path - 1);
	if (length < 0)
		return;
	path[length] = 0;
	if (strncmp(path, folder, size) != 0 || (path[size] != '/' && path[size] != 0))
		return;
	pthread_mutex_lock(&lock);
	path_of(link, "%s/cut", disk);
	if (access(link, F_OK) == 0) {
		path_of(link, "%s/held", disk);
		make_empty(link);
		for (;;)
			pause();
	}
	if (look(file, "", AT_EMPTY_PATH, &about) != 0)
		fatal(path);
	if (S_ISDIR(about.stx_mode))
		keep_names(path);
	else if (about.stx_nlink > 0)
		keep_file(file, &about);
	pthread_mutex_unlock(&lock);
}

int fsync(int file)
{
	if (syscall(SYS_fsync, file) != 0)
		return -1;
	keep(file);
	return 0;
}

int fdatasync(int file)
{
	if (syscall(SYS_fdatasync, file) != 0)
		return -1;
	keep(file);
	return 0;
}

static int keep_found(const char *path, const struct stat *found, int kind, struct FTW *where)
{
	struct statx about;
	int file;

	(void)found;
	(void)where;
	if (kind == FTW_D) {
		keep_names(path);
	} else if (kind == FTW_F) {
		file = open(path, O_RDONLY | O_CLOEXEC);
		if (file < 0 || look(file, "", AT_EMPTY_PATH, &about) != 0)
			fatal(path);
		keep_file(file, &about);
		close(file);
	}
	return 0;
}

/* A thread that the child does not have may have held it. */
static void lock_of_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void begin(void)
{
	char names[PATH_MAX];
	const char *wanted = getenv("FORGETFUL_FOLDER"), *place = getenv("FORGETFUL_DISK");

	if (!wanted || !place)
		return;
	/* Copies: a program may write over its environment, to change its title. */
	folder = strdup(wanted);
	disk = strdup(place);
	pthread_atfork(NULL, NULL, lock_of_child);
	path_of(names, "%s/names", disk);
	/* Programs that this one starts find it there, and promise nothing anew. */
	if (mkdir(names, 0700) == 0 && nftw(folder, keep_found, 16, FTW_PHYS) != 0)
		fatal(folder);
}

#endif
