// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemoryLayout;
import java.util.List;

/// The setters of libcufile 1.0, which change an open driver, and open it first if it is not. `cufile.json` and
/// [CuFileParameters] set the same for a driver that is not open yet. [CuFileProperties] reads the values back, but not
/// in compatibility mode. Thread-safe.
public final class CuFileLimits {
  private final NativeLibrary library;

  CuFileLimits(CuFile cuFile) {
    this.library = library(cuFile);
  }

  /// Sets whether reads and writes of up to `thresholdKib` KiB poll for their end instead of sleeping.
  // CUfileError_t cuFileDriverSetPollMode(bool poll, size_t poll_threshold_size)
  public void setPollMode(boolean poll, long thresholdKib) {
    function(library, "cuFileDriverSetPollMode", JAVA_BOOLEAN, JAVA_LONG)
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

  /// The library of a binding, for functions that the main code has no use for.
  static NativeLibrary library(CuFile cuFile) {
    return NativeLibrary.load(List.of(cuFile.libraryName())).orElseThrow(AssertionError::new);
  }

  static CuFileFunction function(NativeLibrary library, String symbol, MemoryLayout... arguments) {
    return CuFileFunction.find(library, symbol, arguments).orElseThrow(AssertionError::new);
  }

  private void set(String symbol, long kib) {
    function(library, symbol, JAVA_LONG).call(kib + " KiB", kib);
  }
}
