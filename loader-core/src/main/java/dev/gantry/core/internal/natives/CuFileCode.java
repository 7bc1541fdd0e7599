// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import dev.gantry.core.Failure;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import jcuda.driver.CUresult;

/// The codes of `CUfileOpError`. 5021 and 5032 do not exist.
///
/// Source: cuFile API reference, section 4.1.3, and `cufile.h` of CUDA 13.0 to 13.4.
public enum CuFileCode {
  CU_FILE_DRIVER_NOT_INITIALIZED(5001, "the nvidia-fs driver is not loaded"),
  CU_FILE_DRIVER_INVALID_PROPS(5002, "invalid property"),
  CU_FILE_DRIVER_UNSUPPORTED_LIMIT(5003, "property out of range"),
  CU_FILE_DRIVER_VERSION_MISMATCH(5004, "the nvidia-fs driver has another version"),
  CU_FILE_DRIVER_VERSION_READ_ERROR(5005, "the nvidia-fs driver's version could not be read"),
  CU_FILE_DRIVER_CLOSING(5006, "the driver is shutting down"),
  CU_FILE_PLATFORM_NOT_SUPPORTED(5007, "GPUDirect Storage does not support this platform"),
  CU_FILE_IO_NOT_SUPPORTED(5008, "GPUDirect Storage does not support this file"),
  CU_FILE_DEVICE_NOT_SUPPORTED(5009, "GPUDirect Storage does not support this GPU"),
  CU_FILE_NVFS_DRIVER_ERROR(5010, "an ioctl of the nvidia-fs driver failed"),
  CU_FILE_CUDA_DRIVER_ERROR(5011, "a call of the CUDA driver failed"),
  CU_FILE_CUDA_POINTER_INVALID(5012, "not a device pointer"),
  CU_FILE_CUDA_MEMORY_TYPE_INVALID(5013, "memory of a kind that cannot be used"),
  CU_FILE_CUDA_POINTER_RANGE_ERROR(5014, "range beyond the allocation"),
  CU_FILE_CUDA_CONTEXT_MISMATCH(5015, "memory of another CUDA context"),
  CU_FILE_INVALID_MAPPING_SIZE(5016, "access beyond the largest size that may be pinned"),
  CU_FILE_INVALID_MAPPING_RANGE(5017, "access beyond the registered size"),
  CU_FILE_INVALID_FILE_TYPE(5018, "files of this type are not supported"),
  CU_FILE_INVALID_FILE_OPEN_FLAG(5019, "the file was opened with flags that are not supported"),
  CU_FILE_DIO_NOT_SET(5020, "the file was not opened with O_DIRECT"),
  CU_FILE_INVALID_VALUE(5022, "invalid arguments"),
  CU_FILE_MEMORY_ALREADY_REGISTERED(5023, "the memory is registered already"),
  CU_FILE_MEMORY_NOT_REGISTERED(5024, "the memory is not registered"),
  CU_FILE_PERMISSION_DENIED(5025, "no access to the driver or the file"),
  CU_FILE_DRIVER_ALREADY_OPEN(5026, "the driver is open already"),
  CU_FILE_HANDLE_NOT_REGISTERED(5027, "the file is not registered"),
  CU_FILE_HANDLE_ALREADY_REGISTERED(5028, "the file is registered already"),
  CU_FILE_DEVICE_NOT_FOUND(5029, "no such GPU"),
  CU_FILE_INTERNAL_ERROR(5030, "internal error, see cufile.log"),
  CU_FILE_GETNEWFD_FAILED(5031, "no new file descriptor available"),
  CU_FILE_NVFS_SETUP_ERROR(5033, "the nvidia-fs driver could not be initialised"),
  CU_FILE_IO_DISABLED(5034, "the configuration disables GPUDirect Storage for this file"),
  CU_FILE_BATCH_SUBMIT_FAILED(5035, "a batch could not be submitted"),
  CU_FILE_GPU_MEMORY_PINNING_FAILED(5036, "GPU memory could not be pinned"),
  CU_FILE_BATCH_FULL(5037, "the batch queue is full"),
  CU_FILE_ASYNC_NOT_SUPPORTED(5038, "operations on streams are not supported"),
  CU_FILE_INTERNAL_BATCH_SETUP_ERROR(5039, "internal error in batch setup, may be tried again"),
  CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR(5040, "internal error in batch submit, may be tried again"),
  CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR(
      5041, "internal error in batch status, may be tried again"),
  CU_FILE_INTERNAL_BATCH_CANCEL_ERROR(5042, "internal error in batch cancel, may be tried again"),
  CU_FILE_NOMEM_ERROR(5043, "cuFile is out of memory, may be tried again"),
  CU_FILE_IO_ERROR(5044, "I/O error"),
  CU_FILE_INTERNAL_BUF_REGISTER_ERROR(5045, "internal error in buffer registration"),
  CU_FILE_HASH_OPR_ERROR(5046, "internal error in a hash table"),
  CU_FILE_INVALID_CONTEXT_ERROR(5047, "invalid CUDA context"),
  CU_FILE_NVFS_INTERNAL_DRIVER_ERROR(5048, "internal error of the nvidia-fs driver"),
  CU_FILE_BATCH_NOCOMPAT_ERROR(5049, "the batch needs compat mode, which is off"),
  CU_FILE_IO_MAX_ERROR(5050, "end of the table of GPUDirect Storage errors");

  private static final Map<Integer, CuFileCode> BY_CODE =
      Stream.of(values())
          .collect(Collectors.toUnmodifiableMap(CuFileCode::code, Function.identity()));

  private final int code;
  private final String meaning;

  CuFileCode(int code, String meaning) {
    this.code = code;
    this.meaning = meaning;
  }

  public int code() {
    return code;
  }

  /// Returns the constant of this code; empty if the table has none, since the library is newer.
  public static Optional<CuFileCode> of(int code) {
    return Optional.ofNullable(BY_CODE.get(code));
  }

  /// Makes cuFile's own failure; its name is `unknown` if the table has no such code.
  public static Failure.CuFile failure(int code) {
    return of(code)
        .map(known -> new Failure.CuFile(code, known.name(), known.meaning))
        .orElseGet(() -> new Failure.CuFile(code, "unknown", "no such code in our table"));
  }

  /// Makes the failure that a `CUfileError_t` reports. It is the CUDA driver's failure if cuFile
  /// only forwards it.
  ///
  /// @param cudaCode a `CUresult`, meaningful only with `CU_FILE_CUDA_DRIVER_ERROR`
  public static Failure failure(int code, int cudaCode) {
    if (code == CU_FILE_CUDA_DRIVER_ERROR.code && cudaCode != CUresult.CUDA_SUCCESS) {
      return new Failure.Cuda(cudaCode, CUresult.stringFor(cudaCode), "reported through cuFile");
    }
    return failure(code);
  }
}
