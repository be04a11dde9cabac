# HAYATE_TRY_FLAGS(FLAGS)
# Set hayate_ok to whether the compiler takes FLAGS without a warning.
AC_DEFUN([HAYATE_TRY_FLAGS], [dnl
hayate_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS -Werror $1"
AC_LINK_IFELSE([AC_LANG_PROGRAM()], [hayate_ok=yes], [hayate_ok=no])
CFLAGS=$hayate_save_CFLAGS])

# HAYATE_APPEND_FLAGS(VARIABLE, FLAGS)
# Append to VARIABLE each of FLAGS that the compiler takes, for compiling and
# for linking. All at once is the usual case, and quick.
AC_DEFUN([HAYATE_APPEND_FLAGS], [dnl
AC_MSG_CHECKING([for flags of $CC for $1])
hayate_taken=
HAYATE_TRY_FLAGS([$2])
AS_IF([test $hayate_ok = yes],
  [hayate_taken=" $2"],
  [for hayate_flag in $2; do
     HAYATE_TRY_FLAGS([$hayate_flag])
     AS_IF([test $hayate_ok = yes], [AS_VAR_APPEND([hayate_taken], [" $hayate_flag"])])
   done])
AS_VAR_APPEND([$1], ["$hayate_taken"])
AC_MSG_RESULT([${hayate_taken:- none}])])

# HAYATE_NEED_LIB(HEADER, FUNCTION, LIBRARY, DEBIAN-PACKAGE)
# Add LIBRARY to LIBS; if it or HEADER is missing, remember both names, so that
# configure can report everything that is missing at once.
AC_DEFUN([HAYATE_NEED_LIB], [dnl
hayate_found=yes
AC_CHECK_HEADER([$1], [], [hayate_found=no])
AS_IF([test $hayate_found = yes],
  [AC_SEARCH_LIBS([$2], [$3], [], [hayate_found=no], [-lm])])
AS_IF([test $hayate_found = no],
  [AS_VAR_APPEND([hayate_missing], ["
    lib$3 ($1): Debian package $4"])])])
