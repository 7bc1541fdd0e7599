// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/// A function of libcufile that returns `CUfileError_t` by value, as all do but reads, writes, the use count and the
/// deregistration of a file. [#call] boxes its arguments, which is good enough for functions that are called once per
/// driver, file or slab. Thread-safe.
final class CuFileFunction {
  // typedef struct CUfileError { CUfileOpError err; CUresult cu_err; } CUfileError_t;
  // x86-64 and AArch64 return these eight bytes in the register of a long. As a long, the status
  // needs no memory: a call that registers or deregisters must not fail for want of heap
  // afterwards.
  private static final ValueLayout.OfLong STATUS = ValueLayout.JAVA_LONG;

  // CUFILEOP_BASE_ERR
  private static final int CODES_BASE = 5000;

  private final String name;
  private final MethodHandle handle;

  private CuFileFunction(String name, MethodHandle handle) {
    this.name = name;
    this.handle = handle;
  }

  static Availability<CuFileFunction> find(
      NativeLibrary library, String symbol, MemoryLayout... arguments) {
    return library
        .function(symbol, FunctionDescriptor.of(STATUS, arguments))
        .then(handle -> Availability.present(new CuFileFunction(symbol, handle)));
  }

  /// Calls the function with boxed arguments.
  ///
  /// @param subject the object of the call, for messages
  /// @throws TransferException if the status is not `CU_FILE_SUCCESS`
  void call(String subject, Object... arguments) {
    CuFile.Callers.add();
    try {
      check((long) handle.invokeWithArguments(arguments), subject);
    } catch (Throwable thrown) {
      throw NativeLibrary.unchecked(thrown);
    }
  }

  /// Calls a function without arguments. This needs no heap unless the call fails.
  void call(String subject) {
    CuFile.Callers.add();
    try {
      check((long) handle.invokeExact(), subject);
    } catch (Throwable thrown) {
      throw NativeLibrary.unchecked(thrown);
    }
  }

  /// Sets a parameter. This needs no heap unless the call fails.
  void call(CuFile.Flag flag, int parameter, boolean value) {
    CuFile.Callers.add();
    try {
      long status = (long) handle.invokeExact(parameter, value);
      if (status != 0) {
        check(status, flag + " = " + value);
      }
    } catch (Throwable thrown) {
      throw NativeLibrary.unchecked(thrown);
    }
  }

  /// Calls a function of registered memory. This needs no heap unless the call fails.
  void call(MemorySegment memory) {
    CuFile.Callers.add();
    try {
      long status = (long) handle.invokeExact(memory);
      if (status != 0) {
        check(status, CuFile.describe(memory));
      }
    } catch (Throwable thrown) {
      throw NativeLibrary.unchecked(thrown);
    }
  }

  private void check(long status, String subject) {
    int code = (int) status;
    if (code != 0) {
      int cudaCode = (int) (status >>> Integer.SIZE);
      throw new TransferException(name, subject, CuFileCode.failure(code, cudaCode));
    }
  }

  /// Makes the failure of a read or write that did not return a number of bytes.
  static Failure transferFailure(long returned, int errno) {
    if (returned == -1) {
      // libcufile has been seen to store one of its own codes in `errno`.
      return errno > CODES_BASE ? CuFileCode.failure(errno) : Errno.failure(errno);
    }
    // cufile.h takes the absolute value too, and libcufile has been seen to return a code without
    // its sign.
    long code = Math.abs(returned);
    return code > CODES_BASE && code == (int) code
        ? CuFileCode.failure((int) code)
        : new Failure.CuFile(
            Math.clamp(returned, Integer.MIN_VALUE, Integer.MAX_VALUE),
            "unknown",
            "neither a count within the request nor a code of cuFile");
  }
}
