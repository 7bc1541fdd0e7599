// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Objects;

/// The functions of libcufile that move bytes. Each returns a count, -1 with errno, or a negative
/// code. [CuFile] documents them. Thread-safe.
final class CuFileTransfers {
  private static final StructLayout CALL_STATE = Linker.Option.captureStateLayout();
  private static final long ERRNO = CALL_STATE.byteOffset(groupElement("errno"));
  private static final int NO_FLAGS = 0;

  // typedef struct CUfileIOVec { void *base; size_t len; } CUfileIOVec_t;
  private static final StructLayout PIECE =
      MemoryLayout.structLayout(ADDRESS.withName("base"), JAVA_LONG.withName("len"));

  private final MethodHandle read;
  private final MethodHandle write;
  private final Availability<MethodHandle> readTogether;
  private final Availability<MethodHandle> writeTogether;

  /// @throws NoSuchElementException if the library lacks a function that libcufile 1.0 has
  CuFileTransfers(NativeLibrary library) {
    Linker.Option errno = Linker.Option.captureCallState("errno");
    FunctionDescriptor ofOne =
        FunctionDescriptor.of(JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    // ssize_t cuFileRead(CUfileHandle_t fh, void *bufPtr_base, size_t size, off_t file_offset,
    //                    off_t bufPtr_offset)
    read = library.function("cuFileRead", ofOne, errno).orElseThrow(NoSuchElementException::new);
    // ssize_t cuFileWrite(CUfileHandle_t fh, const void *bufPtr_base, size_t size,
    //                     off_t file_offset, off_t bufPtr_offset)
    write = library.function("cuFileWrite", ofOne, errno).orElseThrow(NoSuchElementException::new);
    FunctionDescriptor ofSeveral =
        FunctionDescriptor.of(JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_INT);
    // ssize_t cuFileReadv(CUfileHandle_t fh, const CUfileIOVec_t *iov, size_t iovcnt,
    //                     off_t file_offset, unsigned flags)
    readTogether = library.function("cuFileReadv", ofSeveral, errno);
    // ssize_t cuFileWritev(CUfileHandle_t fh, const CUfileIOVec_t *iov, size_t iovcnt,
    //                      off_t file_offset, unsigned flags)
    writeTogether = library.function("cuFileWritev", ofSeveral, errno);
  }

  boolean hasVectors() {
    return readTogether.toOptional().isPresent() && writeTogether.toOptional().isPresent();
  }

  long read(CuFileHandle handle, MemorySegment base, long bytes, long fileOffset, long baseOffset) {
    return move("cuFileRead", read, handle, base, bytes, fileOffset, baseOffset);
  }

  long write(
      CuFileHandle handle, MemorySegment base, long bytes, long fileOffset, long baseOffset) {
    return move("cuFileWrite", write, handle, base, bytes, fileOffset, baseOffset);
  }

  long readTogether(CuFileHandle handle, List<MemorySegment> pieces, long fileOffset) {
    return move("cuFileReadv", readTogether, handle, pieces, fileOffset);
  }

  long writeTogether(CuFileHandle handle, List<MemorySegment> pieces, long fileOffset) {
    return move("cuFileWritev", writeTogether, handle, pieces, fileOffset);
  }

  private static long move(
      String operation,
      MethodHandle function,
      CuFileHandle handle,
      MemorySegment base,
      long bytes,
      long fileOffset,
      long baseOffset) {
    Objects.checkFromIndexSize(baseOffset, bytes, base.byteSize());
    CuFile.Callers.add();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment state = arena.allocate(CALL_STATE);
      long returned =
          (long) function.invokeExact(state, handle.opaque(), base, bytes, fileOffset, baseOffset);
      int errno = state.get(JAVA_INT, ERRNO);
      return handle.count(operation, returned, errno, bytes, fileOffset);
    } catch (Throwable thrown) {
      throw NativeLibrary.unchecked(thrown);
    }
  }

  private static long move(
      String operation,
      Availability<MethodHandle> function,
      CuFileHandle handle,
      List<MemorySegment> pieces,
      long fileOffset) {
    Objects.checkIndex(pieces.size() - 1, CuFile.MAX_PIECES);
    MethodHandle present = function.orElseThrow(NoSuchElementException::new);
    CuFile.Callers.add();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate(PIECE, pieces.size());
      long bytes = 0;
      for (int i = 0; i < pieces.size(); i++) {
        MemorySegment piece = pieces.get(i);
        all.set(ADDRESS, i * PIECE.byteSize(), piece);
        all.set(JAVA_LONG, i * PIECE.byteSize() + ADDRESS.byteSize(), piece.byteSize());
        bytes += piece.byteSize();
      }
      MemorySegment state = arena.allocate(CALL_STATE);
      long returned =
          (long)
              present.invokeExact(
                  state, handle.opaque(), all, (long) pieces.size(), fileOffset, NO_FLAGS);
      int errno = state.get(JAVA_INT, ERRNO);
      return handle.count(operation, returned, errno, bytes, fileOffset);
    } catch (Throwable thrown) {
      throw NativeLibrary.unchecked(thrown);
    }
  }
}
