# Targets torch::c10, torch::torch, torch::torch_cpu and torch::torch_python for the torch of ${Python_EXECUTABLE}.
# torch says where it is and how it was built: find_package(Torch) needs a CUDA toolkit with CUDA wheels.
execute_process(
  COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/torch_facts.py
  OUTPUT_VARIABLE TORCH_FACTS OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
list(GET TORCH_FACTS 0 TORCH_VERSION)
list(GET TORCH_FACTS 1 TORCH_NUMBER)
list(GET TORCH_FACTS 2 TORCH_ROOT)
list(GET TORCH_FACTS 3 TORCH_CXX11_ABI)
list(GET TORCH_FACTS 4 TORCH_KINETO)

foreach(library c10 torch torch_cpu torch_python)
  add_library(torch::${library} SHARED IMPORTED)
  set_target_properties(torch::${library} PROPERTIES
    IMPORTED_LOCATION ${TORCH_ROOT}/lib/lib${library}.so
    IMPORTED_NO_SONAME ON
    INTERFACE_INCLUDE_DIRECTORIES "${TORCH_ROOT}/include;${TORCH_ROOT}/include/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS "_GLIBCXX_USE_CXX11_ABI=${TORCH_CXX11_ABI}")
endforeach()
