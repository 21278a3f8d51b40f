# cmake -DPROGRAM=FILE -DLIST=OPTIONS -DPREFIX=TEXT -DTAGS=a;b -DOUT=FILE -P labels.cmake: writes OUT, a script for CTest.
# The script gives the label `a` to each test of PROGRAM that has the tag [a] of Catch2, in addition to its other labels.
# LIST has the options that print the names of tests.
set(script "")
foreach(tag IN LISTS TAGS)
  execute_process(COMMAND ${PROGRAM} "[${tag}]" ${LIST} OUTPUT_VARIABLE names ERROR_VARIABLE error RESULT_VARIABLE status)
  if(NOT status MATCHES "^[0-9]+$")  # Catch2 2 returns the number of tests, a crash returns a text
    message(FATAL_ERROR "${PROGRAM} cannot list its tests with the tag [${tag}]: ${status}\n${error}")
  endif()
  string(REGEX MATCHALL "[^\n]+" names "${names}")
  foreach(name IN LISTS names)
    string(APPEND script "set_tests_properties([==[${PREFIX}${name}]==] PROPERTIES LABELS ${tag})\n")
  endforeach()
endforeach()
file(WRITE ${OUT} "${script}")
