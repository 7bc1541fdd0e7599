// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;

/// The setters of libcufile 1.0, which change an open driver, and open it first if it is not. `cufile.json` and
/// [CuFileParameters] set the same for a driver that is not open yet. [CuFileProperties] reads the values back, but not
/// in compatibility mode. Thread-safe.
public final class CuFileLimits {
  private final NativeLibrary library;

  CuFileLimits(NativeLibrary library) {
    this.library = library;
  }

  /// Sets whether reads and writes of up to `thresholdKib` KiB poll for their end instead of sleeping.
  // CUfileError_t cuFileDriverSetPollMode(bool poll, size_t poll_threshold_size)
  public void setPollMode(boolean poll, long thresholdKib) {
    CuFileFunction.require(library, "cuFileDriverSetPollMode", JAVA_BOOLEAN, JAVA_LONG)
        .call(poll + ", " + thresholdKib + " KiB", poll, thresholdKib);
  }

  /// Sets the largest request that libcufile makes of nvidia-fs, in KiB.
  // CUfileError_t cuFileDriverSetMaxDirectIOSize(size_t max_direct_io_size)
  public void setMaxDirectIoKib(long kib) {
    set("cuFileDriverSetMaxDirectIOSize", kib);
  }

  /// Sets how much device memory libcufile takes for its bounce buffers on each device, in KiB.
  // CUfileError_t cuFileDriverSetMaxCacheSize(size_t max_cache_size)
  public void setMaxCacheKib(long kib) {
    set("cuFileDriverSetMaxCacheSize", kib);
  }

  /// Sets how much device memory may be registered on each device, in KiB.
  // CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t max_pinned_size)
  public void setMaxPinnedKib(long kib) {
    set("cuFileDriverSetMaxPinnedMemSize", kib);
  }

  /// The number of the driver's users in this process; absent before libcufile 1.7.
  // long cuFileUseCount(void)
  public Availability<Long> useCount() {
    return library
        .function("cuFileUseCount", FunctionDescriptor.of(JAVA_LONG))
        .then(function -> {
          try {
            return Availability.present((long) function.invokeExact());
          } catch (Throwable thrown) {
            throw NativeLibrary.unchecked(thrown);
          }
        });
  }

  private void set(String symbol, long kib) {
    CuFileFunction.require(library, symbol, JAVA_LONG).call(kib + " KiB", kib);
  }
}
