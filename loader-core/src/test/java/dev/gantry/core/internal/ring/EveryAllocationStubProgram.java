// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.DType;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.convert.Dequantisation;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.spi.Formula;
import dev.gantry.testing.AllocationSearch;
import dev.gantry.testing.stub.StubControls;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/// Lets each kind of worker of a GPU fail at its first heap allocation, then at its second, and so
/// on: `FOLDER MOST`, where `MOST` bounds the number of allocations of each kind.
final class EveryAllocationStubProgram {
  private static final int ELEMENTS = 64;
  private static final int SLAB_BYTES = 4096;

  /// The stub of libcuda counts by these names what must never happen.
  private static final List<String> WRONG =
      List.of("freed while pending", "freed while registered");

  /// The stub of libcufile counts by these names what it has given out.
  private static final List<String> CUFILE = List.of("opened", "handles", "buffers");

  @FunctionalInterface
  private interface Work {
    void run(GantrySession session) throws Exception;
  }

  private EveryAllocationStubProgram() {}

  public static void main(String[] arguments) {
    System.setProperty("org.slf4j.simpleLogger.log.dev.gantry", "off");
    DeviceWork work = new DeviceWork(Path.of(arguments[0]));
    OtherDeviceWork other = new OtherDeviceWork(Path.of(arguments[0]));
    StubControls cuda = StubControls.cuda();
    StubControls cuFile = StubControls.cuFile();
    cuFile.direct(true);
    Work direct = session -> work.loadAndSave(session, CachePolicy.DIRECT);
    Work staged = session -> work.loadAndSave(session, CachePolicy.BUFFERED);
    Work directBatches = session -> work.readBatches(session, CachePolicy.DIRECT);
    Work batches = session -> work.readBatches(session, CachePolicy.BUFFERED);
    Work mapped = session -> other.readBatches(session, Transport.MAPPED);
    Work snapshot = session -> other.saveSnapshot(session, 0);
    Map<String, AllocationSearch.Operation> operations = new LinkedHashMap<>();
    operations.put("gantry-reader- past the CPU", in(direct));
    operations.put("gantry-reader- by pinned buffers", in(staged));
    operations.put("gantry-writer- past the CPU", in(direct));
    operations.put("gantry-writer- by pinned buffers", in(staged));
    operations.put("gantry-ring- past the CPU", in(directBatches));
    operations.put("gantry-ring- by pinned buffers", in(batches));
    operations.put("caller loads and saves past the CPU", in(direct));
    operations.put("caller loads and saves by pinned buffers", in(staged));
    operations.put("caller reads batches past the CPU", in(directBatches));
    operations.put("caller reads batches by pinned buffers", in(batches));
    operations.put("gantry-kept by pinned buffers", in(staged));
    operations.put("gantry-kept past the CPU", in(direct));
    operations.put("gantry-mapper keeps a file", in(batches));
    operations.put("gantry-ring- fetches", in(mapped));
    operations.put("caller reads batches that are fetched", in(mapped));
    for (Transport asked : List.of(Transport.GDS, Transport.COMPAT)) {
      operations.put(
          "caller reads batches by " + asked, in(session -> other.readBatches(session, asked)));
    }
    operations.put("gantry-reader- of a remote file", in(other::loadRemote));
    operations.put("caller loads a remote file", in(other::loadRemote));
    operations.put("caller reads into memory", in(other::readIntoMemory));
    operations.put("gantry-reader- for two GPUs", in(other::loadSlices));
    operations.put("caller loads slices for two GPUs", in(other::loadSlices));
    operations.put("caller saves a snapshot by pinned memory", in(snapshot));
    operations.put(
        "caller saves a snapshot on the GPU", in(session -> other.saveSnapshot(session, 1 << 30)));
    operations.put("caller maps resident weights", in(other::mapResidentWeights));
    operations.put("caller prepares a conversion", in(EveryAllocationStubProgram::prepare));
    operations.put("caller converts", in(EveryAllocationStubProgram::convert));
    new AllocationSearch(
            GantrySession.shared(),
            () ->
                Stream.concat(
                        Stream.concat(DeviceWork.FIGURES.stream(), WRONG.stream()).map(cuda::count),
                        CUFILE.stream().map(cuFile::count))
                    .toList(),
            Integer.parseInt(arguments[1]))
        .run(operations);
  }

  private static AllocationSearch.Operation in(Work work) {
    return () -> {
      try (GantrySession session = GantrySession.open()) {
        work.run(session);
      }
    };
  }

  private static Dequantisation conversion() {
    return new Dequantisation(
        Formula.real(0, DType.I8, Formula.Axis.COLUMN),
        DType.F32,
        new Dequantisation.Box(
            new Dequantisation.Indexes(0, 0, 0), new Dequantisation.Indexes(1, 1, ELEMENTS)),
        List.of(new Dequantisation.Input(ELEMENTS, List.of(1L), 0)),
        List.of());
  }

  private static void prepare(GantrySession session) {
    session.prepareConversion(conversion(), DeviceWork.DEVICE);
  }

  private static void convert(GantrySession session) {
    DeviceSlab slab = DeviceSlab.allocate(CudaContext.of(DeviceWork.DEVICE), SLAB_BYTES);
    try {
      session.convert(
          List.of(
              new Dequantisation.Task(
                  conversion(), List.of(slab.address()), slab.address() + SLAB_BYTES / 2)),
          DeviceWork.DEVICE,
          new Cancellation());
    } finally {
      slab.release();
    }
  }
}
