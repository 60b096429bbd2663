# Files inside the binary, so that an installation is self-contained.
#
#   stem_embed(stem_db NAMESPACE stem::db HEADER db/embedded.h FILES schema.sql views.sql)
#
# makes generated/db/embedded.h with `std::span<const EmbeddedFile> embedded_files()` in that namespace, and adds its
# source to the target. It is made again when a file changes. Names are relative to the current folder.
function(stem_embed target)
  cmake_parse_arguments(ARG "" "NAMESPACE;HEADER" "FILES" ${ARGN})
  set(header ${CMAKE_BINARY_DIR}/generated/${ARG_HEADER})
  string(REGEX REPLACE "\\.h$" ".cpp" source ${header})
  set(paths)
  foreach(file ${ARG_FILES})
    list(APPEND paths ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  string(REPLACE ";" "," names "${ARG_FILES}")
  add_custom_command(
    OUTPUT ${header} ${source}
    COMMAND ${CMAKE_COMMAND} -DNAMESPACE=${ARG_NAMESPACE} -DHEADER=${ARG_HEADER} -DFOLDER=${CMAKE_CURRENT_SOURCE_DIR}
            -DNAMES=${names} -DOUT_HEADER=${header} -DOUT_SOURCE=${source} -P ${CMAKE_SOURCE_DIR}/cmake/EmbedFiles.cmake
    DEPENDS ${paths} ${CMAKE_SOURCE_DIR}/cmake/EmbedFiles.cmake
    COMMENT "Embedding ${names}" VERBATIM)
  target_sources(${target} PRIVATE ${header} ${source})
endfunction()
