// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.GantryException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.stub.StubControls;
import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Every function of libcuda and libcufile that a load, a ring and a save call fails once: at its
/// first call, its last call and some calls between. `-Dgantry.every.call=1000` lets up to 1000
/// calls of each function fail.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
class EveryCallStubTest {
  private static final int MOST = Integer.getInteger("gantry.every.call", 3);
  private static final int CUDA_ERROR_UNKNOWN = 999;
  private static final int CUFILE_INTERNAL_ERROR = 5030;
  private static final int EIO = 5;

  /// Functions that give a resource back to the driver. If such a call fails, the driver keeps the
  /// resource. cuCtxPushCurrent is included because it precedes other such calls.
  private static final String GIVES_BACK =
      "cuCtxPushCurrent|.*(Free|Destroy|Release|Deregister|Unregister|Unload|Close|Unmap).*";

  /// Functions whose failure leaves resources: memory that cannot be deregistered is never freed
  /// (see `RegistrationCache`), and a driver that cannot be closed stays open for the following
  /// tests. cuCtxPopCurrent ends such calls, and fails only if the context is gone.
  private static final Set<String> KEEP_WHAT_THEY_HAVE =
      Set.of(
          "cuFileBufDeregister",
          "cuMemHostUnregister",
          "cuCtxPopCurrent",
          "cuFileDriverClose",
          "cuFileSetParameterBool");

  private static final List<String> WRONG =
      List.of("freed while pending", "freed while registered", "pageable copies");

  /// The library whose call fails.
  private enum Failing {
    CUDA,
    CUFILE
  }

  @TempDir Path folder;
  private final StubControls cuda = StubControls.cuda();
  private final StubControls cuFile = StubControls.cuFile();
  private DeviceWork work;

  @BeforeEach
  void begin() {
    cuda.clear();
    cuFile.clear();
    cuFile.direct(true);
    work = new DeviceWork(folder);
  }

  @AfterEach
  void end() {
    cuda.clear();
    cuFile.clear();
    cuFile.direct(false);
  }

  private List<Long> figures() {
    return DeviceWork.FIGURES.stream().map(cuda::count).toList();
  }

  private void loadReadAndSave() throws IOException {
    try (GantrySession gantry = GantrySession.open()) {
      for (CachePolicy policy : List.of(CachePolicy.DIRECT, CachePolicy.BUFFERED)) {
        work.loadAndSave(gantry, policy);
        work.readBatches(gantry, policy);
      }
    } finally {
      GantrySession.shared().freeIdle();
    }
  }

  /// Returns the numbers of the first call, of the last call, and of others evenly between them.
  private static LongStream chosen(long calls) {
    if (calls <= MOST) {
      return LongStream.rangeClosed(1, calls);
    }
    return LongStream.range(0, MOST).map(i -> 1 + i * (calls - 1) / (MOST - 1)).distinct();
  }

  @ParameterizedTest
  @EnumSource
  void afterAnyCallThatFailsTheNextLoadsAreRightAndNothingIsLeft(Failing failing)
      throws IOException {
    StubControls library = failing == Failing.CUDA ? cuda : cuFile;
    loadReadAndSave();
    cuda.clear();
    cuFile.clear();
    loadReadAndSave();
    Map<String, Long> calls = new LinkedHashMap<>();
    library.called().stream()
        .filter(function -> !KEEP_WHAT_THEY_HAVE.contains(function))
        .forEach(function -> calls.put(function, library.calls(function)));
    assertThat(calls).hasSizeGreaterThan(failing == Failing.CUDA ? 15 : 5);
    List<Long> wrong = WRONG.stream().map(cuda::count).toList();
    int faults = 0;
    for (Map.Entry<String, Long> one : calls.entrySet()) {
      for (long nth : chosen(one.getValue()).toArray()) {
        String where = one.getKey() + ", call " + nth + " of " + one.getValue();
        List<Long> before = figures();
        fail(library, failing, one.getKey(), nth);
        try {
          loadReadAndSave();
        } catch (GantryException _) {
          // Gantry reports the library's failure. An assertion error or another exception fails
          // the test.
        } catch (RuntimeException e) {
          throw new AssertionError(where, e);
        }
        faults++;
        cuda.clear();
        cuFile.clear();
        GantrySession.shared().freeIdle();
        assertThat(NoLeaks.mappedFiles()).as(where).isEmpty();
        assertThat(NoLeaks.held()).as(where).isEqualTo(LiveResources.Snapshot.NOTHING);
        if (!one.getKey().matches(GIVES_BACK)) {
          assertThat(figures()).as("%s: %s", where, DeviceWork.FIGURES).isEqualTo(before);
        }
        assertThat(WRONG.stream().map(cuda::count).toList())
            .as("%s: %s", where, WRONG)
            .isEqualTo(wrong);
        loadReadAndSave();
      }
    }
    System.out.println(failing + ": " + faults + " calls of " + calls.keySet() + " failed");
  }

  private static void fail(StubControls library, Failing failing, String function, long nth) {
    switch (failing) {
      case CUDA -> library.fail(function, nth, CUDA_ERROR_UNKNOWN, 0);
      case CUFILE -> {
        boolean moves = function.matches("cuFile(Read|Write).*");
        library.fail(function, nth, moves ? -1 : CUFILE_INTERNAL_ERROR, moves ? EIO : 0);
      }
    }
  }
}
