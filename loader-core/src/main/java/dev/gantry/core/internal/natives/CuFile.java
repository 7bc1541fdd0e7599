// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.gantry.core.TransferException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.stream.Stream;

/// libcufile: the driver, registered files and buffers, and blocking reads and writes between a
/// file and device memory (or host memory, from CUDA 12.2 on). `docs/cufile.md` lists the
/// library's other functions, and says why batches and streams of requests are not used.
///
/// Thread-safe: reads and writes run in parallel, each on its caller's thread, which must have the memory's CUDA
/// context current. They are not ordered with any CUDA stream.
///
/// Source: cuFile API reference, up to CUDA 13.4 (libcufile 1.19).
public final class CuFile {
  /// The system property that names the library to use; if it is set, no other library is tried.
  public static final String PROPERTY = "gantry.cufile.library";

  /// The environment variable with the same meaning; the system property takes precedence. An empty value names none.
  public static final String VARIABLE = "GANTRY_CUFILE_LIBRARY";

  private static final String SONAME = "libcufile.so.0";

  /// The version of libcufile, which differs from the version of its CUDA toolkit.
  public record Version(int major, int minor) {
    /// The newest version for whose header this class was written.
    public static final Version NEWEST = new Version(1, 19);

    /// Decodes the number that `cuFileGetVersion` returns: 1000 × major + 10 × minor.
    static Version of(int number) {
      return new Version(number / 1000, number % 1000 / 10);
    }

    /// Whether this is version `major`.`minor` or a later one.
    public boolean isSince(int major, int minor) {
      return this.major > major || (this.major == major && this.minor >= minor);
    }

    /// Whether this version is newer than [#NEWEST].
    public boolean isNewerThanKnown() {
      return isSince(NEWEST.major(), NEWEST.minor() + 1);
    }

    @Override
    public String toString() {
      return major + "." + minor;
    }
  }

  /// Knows which threads have called libcufile. The library keeps state for each such thread until
  /// the thread ends, and all of these threads must end before the driver is closed. Thread-safe.
  public static final class Callers {
    private static final ThreadLocal<Boolean> IS_ONE = ThreadLocal.withInitial(() -> false);

    private Callers() {}

    /// Notes that this thread calls libcufile.
    static void add() {
      IS_ONE.set(true);
    }

    /// Whether this thread has called libcufile.
    public static boolean hasThisThread() {
      return IS_ONE.get();
    }
  }

  // typedef struct CUfileDescr_t { CUfileFileHandleType type;
  //   union { int fd; void *handle; } handle; const CUfileFSOps_t *fs_ops; } CUfileDescr_t;
  private static final StructLayout DESCRIPTION =
      MemoryLayout.structLayout(
          JAVA_INT.withName("type"),
          MemoryLayout.paddingLayout(4),
          JAVA_INT.withName("fd"),
          MemoryLayout.paddingLayout(4),
          ADDRESS.withName("fs_ops"));
  // CU_FILE_HANDLE_TYPE_OPAQUE_FD
  private static final int FILE_DESCRIPTOR = 1;

  private static final int NO_FLAGS = 0;

  private final NativeLibrary library;
  private final CuFileFunction driverOpen;
  private final CuFileFunction driverClose;
  private final CuFileFunction driverGetProperties;
  private final CuFileFunction handleRegister;
  private final MethodHandle handleDeregister;
  private final CuFileFunction bufRegister;
  private final CuFileFunction bufDeregister;
  private final CuFileTransfers transfers;
  private final Availability<CuFileFunction> getVersion;
  private final Availability<CuFileFunction> getBarSize;
  private final Availability<CuFileFunction> setParameterBool;

  /// Finds the library that the property or the variable names; if neither is set, the first one that the dynamic
  /// loader's search or the CUDA toolkit's folders have. Opens no driver.
  public static Availability<CuFile> find() {
    List<String> candidates = new ArrayList<>();
    candidates.add(SONAME);
    candidates.addAll(NativeLibrary.toolkitPaths(SONAME));
    return NativeLibrary.named(PROPERTY, System.getProperty(PROPERTY))
        .or(() -> NativeLibrary.named(VARIABLE, System.getenv(VARIABLE)))
        .orElseGet(() -> NativeLibrary.load(candidates))
        .then(CuFile::bind);
  }

  /// Whether the property or the variable names a library.
  public static boolean isNamed() {
    return Stream.of(System.getProperty(PROPERTY), System.getenv(VARIABLE))
        .anyMatch(library -> library != null && !library.isBlank());
  }

  /// Loads this library and tries no other.
  ///
  /// @param library a name for the dynamic loader's search, or an absolute path
  public static Availability<CuFile> load(String library) {
    return NativeLibrary.load(List.of(library)).then(CuFile::bind);
  }

  private static Availability<CuFile> bind(NativeLibrary library) {
    try {
      return Availability.present(new CuFile(library));
    } catch (NoSuchElementException lacking) {
      return Availability.absent(String.valueOf(lacking.getMessage()));
    }
  }

  /// @throws NoSuchElementException if the library lacks a function that libcufile 1.0 has
  private CuFile(NativeLibrary library) {
    this.library = library;
    // CUfileError_t cuFileDriverOpen(void)
    driverOpen = function("cuFileDriverOpen");
    // CUfileError_t cuFileDriverClose_v2(void); cufile.h of CUDA 12 defines cuFileDriverClose as it
    driverClose =
        CuFileFunction.find(library, "cuFileDriverClose_v2")
            .toOptional()
            .orElseGet(() -> function("cuFileDriverClose"));
    // CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *props)
    driverGetProperties = function("cuFileDriverGetProperties", ADDRESS);
    // CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *descr)
    handleRegister = function("cuFileHandleRegister", ADDRESS, ADDRESS);
    // void cuFileHandleDeregister(CUfileHandle_t fh)
    handleDeregister =
        required(library.function("cuFileHandleDeregister", FunctionDescriptor.ofVoid(ADDRESS)));
    // CUfileError_t cuFileBufRegister(const void *bufPtr_base, size_t length, int flags)
    bufRegister = function("cuFileBufRegister", ADDRESS, JAVA_LONG, JAVA_INT);
    // CUfileError_t cuFileBufDeregister(const void *bufPtr_base)
    bufDeregister = function("cuFileBufDeregister", ADDRESS);
    transfers = new CuFileTransfers(library);
    // CUfileError_t cuFileGetVersion(int *version)
    getVersion = CuFileFunction.find(library, "cuFileGetVersion", ADDRESS);
    // CUfileError_t cuFileGetBARSizeInKB(int gpuIndex, size_t *barSize)
    getBarSize = CuFileFunction.find(library, "cuFileGetBARSizeInKB", JAVA_INT, ADDRESS);
    // CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t param, bool value)
    setParameterBool =
        CuFileFunction.find(library, "cuFileSetParameterBool", JAVA_INT, JAVA_BOOLEAN);
  }

  private CuFileFunction function(String symbol, MemoryLayout... arguments) {
    return required(CuFileFunction.find(library, symbol, arguments));
  }

  private static <T> T required(Availability<T> symbol) {
    return symbol.orElseThrow(NoSuchElementException::new);
  }

  /// The name or path under which the library was loaded.
  public String libraryName() {
    return library.name();
  }

  /// The library's version; absent before CUDA 12.3 or so. The driver need not be open.
  public Availability<Version> version() {
    return getVersion.then(function -> {
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment version = arena.allocate(JAVA_INT);
        function.call(libraryName(), version);
        return Availability.present(Version.of(version.get(JAVA_INT, 0)));
      }
    });
  }

  /// A setting of `CUFileBoolConfigParameter_t`, without `CUFILE_PARAM_`.
  public enum Flag {
    PROPERTIES_ALLOW_COMPAT_MODE(1),
    FORCE_COMPAT_MODE(2),
    /// From libcufile 1.19 on.
    PROPERTIES_POSIX_IO_MODE(12),
    /// From libcufile 1.19 on.
    GDS_FALLBACK_IO(13);

    private final int value;

    Flag(int value) {
      this.value = value;
    }
  }

  /// Whether [#set] and [#get] can be called: from libcufile 1.14 on.
  public boolean hasFlags() {
    return setParameterBool instanceof Availability.Present;
  }

  /// Sets a setting before the driver opens. It takes precedence over `cufile.json`.
  public void set(Flag flag, boolean value) {
    setParameterBool.orElseThrow(NoSuchElementException::new).call(flag, flag.value, value);
  }

  /// Returns the value in force; before the driver opens, the value that it will have.
  // CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t param, bool *value)
  public boolean get(Flag flag) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment value = arena.allocate(JAVA_BYTE);
      function("cuFileGetParameterBool", JAVA_INT, ADDRESS).call(flag.name(), flag.value, value);
      return value.get(JAVA_BYTE, 0) != 0;
    }
  }

  /// A kind of storage, as `CUfileDriverStatusFlags_t` numbers it, for which peer-to-peer DMA is switched on or off.
  public enum Storage {
    NVME(4),
    NVME_OVER_FABRICS(5),
    VIRTIOFS(13);

    private final int value;

    Storage(int value) {
      this.value = value;
    }
  }

  /// Disks write into device memory by the kernel's peer-to-peer DMA: `CU_FILE_P2P_FLAG_PCI_P2PDMA`, on x86.
  public static final int PCI_PEER_TO_PEER = 1;

  /// Disks write into device memory over the link between chips: `CU_FILE_P2P_FLAG_C2C`, on Grace.
  public static final int CHIP_TO_CHIP = 1 << 3;

  /// Returns the transports to a kind of storage without nvidia-fs, as bits; absent before
  /// libcufile 1.16.
  // CUfileError_t cuFileDriverGetP2PFlags(CUfileDriverStatusFlags_t status_flag,
  //                                       CUfileP2PFlags_t *p2p_flags)
  public Availability<Integer> peerToPeer(Storage storage) {
    return CuFileFunction.find(library, "cuFileDriverGetP2PFlags", JAVA_INT, ADDRESS)
        .then(function -> {
          try (Arena arena = Arena.ofConfined()) {
            MemorySegment flags = arena.allocate(JAVA_INT);
            function.call(storage.name(), storage.value, flags);
            return Availability.present(flags.get(JAVA_INT, 0));
          }
        });
  }

  /// Switches a transport without nvidia-fs on until the driver closes. Call it while the driver
  /// is open: libcufile 1.17 takes no settings after a call without the driver.
  ///
  /// @param flags either [#PCI_PEER_TO_PEER] or [#CHIP_TO_CHIP]
  /// @throws TransferException if this machine does not support the transport
  // CUfileError_t cuFileDriverSetP2PFlags(CUfileDriverStatusFlags_t status_flag,
  //                                       CUfileP2PFlags_t p2p_flags)
  public void setPeerToPeer(Storage storage, int flags) {
    function("cuFileDriverSetP2PFlags", JAVA_INT, JAVA_INT)
        .call(storage + " = " + flags, storage.value, flags);
  }

  /// Writes the PCIe tree as libcufile sees it, for `miscellaneous.static_routing_filepath` of `cufile.json`. Call it while
  /// the driver is not open: libcufile 1.17 forgets its switches of peer-to-peer DMA then.
  ///
  /// @return the file; absent before libcufile 1.17
  /// @throws TransferException if the file cannot be written
  // CUfileError_t cuFileExportPCIeTopology(const char *filename)
  public Availability<Path> exportTopology(Path file) {
    return CuFileFunction.find(library, "cuFileExportPCIeTopology", ADDRESS)
        .then(function -> {
          try (Arena arena = Arena.ofConfined()) {
            function.call(file.toString(), arena.allocateFrom(file.toString()));
            return Availability.present(file);
          }
        });
  }

  /// The number of times that the driver is open in this process; absent before libcufile 1.7.
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

  /// Opens the driver, or adds one to its use count if it is open. The call also succeeds without
  /// nvidia-fs; all I/O then goes through the CPU, if the configuration allows that.
  ///
  /// No other thread allocates device memory by [CudaDriver] meanwhile: libcufile 1.15.1 then frees
  /// memory that another thread has just allocated (shown on an H200 host; see `docs/cufile.md`).
  public void openDriver() {
    alone(driverOpen);
  }

  /// Closes the driver. No other thread allocates device memory by [CudaDriver] meanwhile.
  public void closeDriver() {
    alone(driverClose);
  }

  private void alone(CuFileFunction function) {
    CudaDriver.ALLOCATING.writeLock().lock();
    try {
      function.call(libraryName());
    } finally {
      CudaDriver.ALLOCATING.writeLock().unlock();
    }
  }

  public CuFileProperties properties() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment struct = arena.allocate(CuFileProperties.ROOM_BYTES, Long.BYTES);
      driverGetProperties.call(libraryName(), struct);
      return CuFileProperties.read(struct);
    }
  }

  /// The BAR1 aperture of a GPU in KiB; absent before libcufile 1.15.
  public Availability<Long> barSizeKib(int gpu) {
    return getBarSize.then(function -> {
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment size = arena.allocate(JAVA_LONG);
        function.call("GPU " + gpu, gpu, size);
        return Availability.present(size.get(JAVA_LONG, 0));
      }
    });
  }

  /// Registers an open file. The caller keeps the descriptor, and closes it after the handle.
  ///
  /// @param file the file, for messages
  /// @param descriptor an open descriptor, without O_APPEND, O_NONBLOCK and the like
  public CuFileHandle registerHandle(Path file, int descriptor) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment description = arena.allocate(DESCRIPTION);
      description.set(JAVA_INT, DESCRIPTION.byteOffset(groupElement("type")), FILE_DESCRIPTOR);
      description.set(JAVA_INT, DESCRIPTION.byteOffset(groupElement("fd")), descriptor);
      MemorySegment handle = arena.allocate(ADDRESS);
      CuFileHandle made = new CuFileHandle(this, file, descriptor);
      handleRegister.call(file.toString(), handle, description);
      made.opened(handle.get(ADDRESS, 0));
      return made;
    }
  }

  void deregisterHandle(MemorySegment handle) {
    Callers.add();
    try {
      handleDeregister.invokeExact(handle);
    } catch (Throwable thrown) {
      throw NativeLibrary.unchecked(thrown);
    }
  }

  /// Registers memory for I/O. After this call, reads and writes of the memory must name this base
  /// address and an offset.
  ///
  /// @param buffer the memory, with its true size. Device memory should begin and end on multiples
  ///     of 64 KiB, since the mapping otherwise includes memory around the buffer
  public void registerBuffer(MemorySegment buffer) {
    bufRegister.call(describe(buffer), buffer, buffer.byteSize(), NO_FLAGS);
  }

  /// Deregisters memory. Call this before the memory is freed.
  public void deregisterBuffer(MemorySegment buffer) {
    bufDeregister.call(buffer);
  }

  /// Reads up to `bytes` bytes of the file from `fileOffset` on into `base` at `baseOffset`.
  ///
  /// @return the number of bytes read, which may be fewer than `bytes` anywhere in the file; 0
  ///     only at the end of the file
  /// @throws TransferException if the kernel or cuFile refuses, or returns a short count that equals a [CuFileCode] and
  ///     does not reach the end of the file
  /// @throws IndexOutOfBoundsException if the range is not within `base`
  public long read(
      CuFileHandle handle, MemorySegment base, long bytes, long fileOffset, long baseOffset) {
    return transfers.read(handle, base, bytes, fileOffset, baseOffset);
  }

  /// Writes up to `bytes` bytes from `base` at `baseOffset` to the file from `fileOffset` on. Work of CUDA streams that
  /// writes to `base` must be complete. The bytes are durable only after fsync.
  ///
  /// @return the number of bytes written, which may be fewer than `bytes`
  /// @throws TransferException if the kernel or cuFile refuses, or returns a short count that equals a [CuFileCode] and
  ///     does not reach the end of the file
  /// @throws IndexOutOfBoundsException if the range is not within `base`
  public long write(
      CuFileHandle handle, MemorySegment base, long bytes, long fileOffset, long baseOffset) {
    return transfers.write(handle, base, bytes, fileOffset, baseOffset);
  }

  /// The most pieces of memory that one request takes. NVIDIA names no limit; this is the kernel's
  /// limit for `preadv`.
  public static final int MAX_PIECES = 1024;

  /// Whether [#readTogether] and [#writeTogether] can be called: from libcufile 1.19 on.
  public boolean hasVectors() {
    return transfers.hasVectors();
  }

  /// Reads one range of the file into several pieces of memory of one device, and fills the pieces
  /// in their order.
  ///
  /// @param pieces 1 to [#MAX_PIECES]
  /// @return as of [#read]
  /// @throws TransferException as of [#read]
  public long readTogether(CuFileHandle handle, List<MemorySegment> pieces, long fileOffset) {
    return transfers.readTogether(handle, pieces, fileOffset);
  }

  /// Writes several pieces of memory of one device to one range of the file, as [#write] does.
  ///
  /// @param pieces 1 to [#MAX_PIECES]
  /// @return as of [#write]
  /// @throws TransferException as of [#write]
  public long writeTogether(CuFileHandle handle, List<MemorySegment> pieces, long fileOffset) {
    return transfers.writeTogether(handle, pieces, fileOffset);
  }

  static String describe(MemorySegment buffer) {
    return buffer.byteSize() + " bytes at 0x" + Long.toHexString(buffer.address());
  }
}
