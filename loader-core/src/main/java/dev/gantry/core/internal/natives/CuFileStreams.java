// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.gantry.core.internal.natives.CudaDriver.Stream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.util.Objects;
import java.util.Set;

/// cuFile's stream API: reads and writes that a CUDA stream runs in its order. Thread-safe; the memory's context must
/// be current on the caller's thread.
public final class CuFileStreams {
  /// What is known of a stream's requests when they are submitted, so that libcufile need not wait for the stream to
  /// read it: `CU_FILE_STREAM_...` of `cufile.h`.
  public enum Fixed {
    /// `CU_FILE_STREAM_FIXED_BUF_OFFSET`
    BUFFER_OFFSET(1),
    /// `CU_FILE_STREAM_FIXED_FILE_OFFSET`
    FILE_OFFSET(2),
    /// `CU_FILE_STREAM_FIXED_FILE_SIZE`
    SIZE(4),
    /// `CU_FILE_STREAM_PAGE_ALIGNED_INPUTS`: size and offsets are multiples of 4 KiB.
    PAGE_ALIGNED(8);

    private final int bit;

    Fixed(int bit) {
      this.bit = bit;
    }
  }

  /// A request's parameters and its result, in memory that must stay allocated until the stream has passed the request.
  ///
  /// @param memory native memory of [#BYTES] bytes, aligned to 8
  public record Parameters(MemorySegment memory) {
    public static final long BYTES = 4 * Long.BYTES;

    public void set(long size, long fileOffset, long bufferOffset) {
      memory.set(JAVA_LONG, 0, size);
      memory.set(JAVA_LONG, 8, fileOffset);
      memory.set(JAVA_LONG, 16, bufferOffset);
      memory.set(JAVA_LONG, 24, 0);
    }

    public long size() {
      return memory.get(JAVA_LONG, 0);
    }

    public long fileOffset() {
      return memory.get(JAVA_LONG, 8);
    }

    public long bufferOffset() {
      return memory.get(JAVA_LONG, 16);
    }

    /// What the request returned. Valid once the stream has passed it.
    public long returned() {
      return memory.get(JAVA_LONG, 24);
    }

    /// The number of bytes that were moved, which may be fewer than asked for. Valid once the stream has passed the
    /// request.
    ///
    /// @param operation the operation, for messages
    /// @throws dev.gantry.core.TransferException if the kernel or cuFile refused
    public long count(String operation, CuFileHandle handle) {
      return handle.count(
          operation, returned(), size(), fileOffset(), CuFileFunction::requestFailure);
    }

    private MemorySegment at(long offset) {
      return memory.asSlice(offset, Long.BYTES);
    }
  }

  private final CuFileFunction register;
  private final CuFileFunction deregister;
  private final CuFileFunction read;
  private final CuFileFunction write;

  private CuFileStreams(
      CuFileFunction register,
      CuFileFunction deregister,
      CuFileFunction read,
      CuFileFunction write) {
    this.register = register;
    this.deregister = deregister;
    this.read = read;
    this.write = write;
  }

  static Availability<CuFileStreams> bind(NativeLibrary library) {
    // CUfileError_t cuFileStreamRegister(CUstream stream, unsigned flags)
    return CuFileFunction.find(library, "cuFileStreamRegister", ADDRESS, JAVA_INT)
        .then(register ->
            // CUfileError_t cuFileStreamDeregister(CUstream stream)
            CuFileFunction.find(library, "cuFileStreamDeregister", ADDRESS)
                .then(deregister ->
                    transfer(library, "cuFileReadAsync")
                        .then(read ->
                            transfer(library, "cuFileWriteAsync")
                                .then(write ->
                                    Availability.present(
                                        new CuFileStreams(register, deregister, read, write))))));
  }

  // CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void *bufPtr_base, size_t *size_p,
  //                               off_t *file_offset_p, off_t *bufPtr_offset_p,
  //                               ssize_t *bytes_read_p, CUstream stream)
  private static Availability<CuFileFunction> transfer(NativeLibrary library, String symbol) {
    return CuFileFunction.find(
        library, symbol, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS);
  }

  /// Prepares a stream for requests. For a request on a stream that is not registered, libcufile waits within the call
  /// until the stream has come to it. In compatibility mode libcufile serves only unregistered streams well, and fails
  /// most requests on registered ones with EIO (seen with libcufile 1.15.1).
  public void register(Stream stream, Set<Fixed> fixed) {
    int flags = fixed.stream().mapToInt(one -> one.bit).sum();
    register.call("stream, flags " + flags, pointer(stream), flags);
  }

  /// Ends what [#register] began. Call it after the stream's last request, and before the stream is destroyed.
  public void deregister(Stream stream) {
    deregister.call("stream", pointer(stream));
  }

  /// Queues a read from the file into `base`.
  public void read(CuFileHandle handle, MemorySegment base, Parameters parameters, Stream stream) {
    submit(read, handle, base, parameters, stream);
  }

  /// Queues a write from `base` to the file.
  public void write(CuFileHandle handle, MemorySegment base, Parameters parameters, Stream stream) {
    submit(write, handle, base, parameters, stream);
  }

  private static void submit(
      CuFileFunction function,
      CuFileHandle handle,
      MemorySegment base,
      Parameters parameters,
      Stream stream) {
    Objects.checkFromIndexSize(parameters.bufferOffset(), parameters.size(), base.byteSize());
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment status =
          (MemorySegment)
              function
                  .handle()
                  .invokeExact(
                      (SegmentAllocator) arena,
                      handle.opaque(),
                      base,
                      parameters.at(0),
                      parameters.at(8),
                      parameters.at(16),
                      parameters.at(24),
                      pointer(stream));
      function.check(status, () -> handle.at(parameters.fileOffset(), parameters.size()));
    } catch (Throwable thrown) {
      throw NativeLibrary.unchecked(thrown);
    }
  }

  private static MemorySegment pointer(Stream stream) {
    return MemorySegment.ofAddress(stream.opaque());
  }
}
