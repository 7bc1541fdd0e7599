package dev.gantry.djl.internal;

import static java.lang.constant.ConstantDescs.CD_long;
import static java.lang.constant.ConstantDescs.CD_void;
import static java.lang.constant.ConstantDescs.INIT_NAME;

import ai.djl.ndarray.internal.NDArrayEx;
import ai.djl.pytorch.engine.PtNDManager;
import java.lang.classfile.ClassFile;
import java.lang.constant.ClassDesc;
import java.lang.constant.MethodTypeDesc;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/// The class of [GantryNDArray]s, made when it is first needed: it overrides
/// `NDArray.getNDArrayInternal`.
///
/// That cannot be said in Java. In `PtNDArray` the method returns a `PtNDArrayEx`, so an override
/// would have to return one, too, and only DJL's own package can make one: a class of ours there
/// would be another package's under a class loader of its own, and would split the package on the
/// module path. To the JVM, a method belongs to its return type: that which returns an `NDArrayEx`,
/// and which callers by the interface reach, is another method, and can be overridden alone.
final class ArrayClass {
  private static final MethodHandle CONSTRUCTOR = constructor();

  private ArrayClass() {}

  /// @throws IllegalStateException if the manager is closed or capped
  static GantryNDArray make(PtNDManager manager, long handle) {
    try {
      return (GantryNDArray) CONSTRUCTOR.invokeExact(manager, handle);
    } catch (RuntimeException | Error refused) {
      throw refused;
    } catch (Throwable impossible) {
      throw new AssertionError("no constructor of DJL's arrays throws this", impossible);
    }
  }

  private static MethodHandle constructor() {
    MethodHandles.Lookup here = MethodHandles.lookup();
    MethodType arguments = MethodType.methodType(void.class, PtNDManager.class, long.class);
    try {
      MethodHandles.Lookup made = here.defineHiddenClass(bytes(), true);
      return made.findConstructor(made.lookupClass(), arguments)
          .asType(arguments.changeReturnType(GantryNDArray.class));
    } catch (ReflectiveOperationException fault) {
      throw new LinkageError("the class was made here", fault);
    }
  }

  private static byte[] bytes() {
    ClassDesc parent = GantryNDArray.class.describeConstable().orElseThrow();
    ClassDesc manager = PtNDManager.class.describeConstable().orElseThrow();
    ClassDesc operations = NDArrayEx.class.describeConstable().orElseThrow();
    MethodTypeDesc construct = MethodTypeDesc.of(CD_void, manager, CD_long);
    MethodTypeDesc get = MethodTypeDesc.of(operations);
    return ClassFile.of()
        .build(
            ClassDesc.of(GantryNDArray.class.getPackageName(), "GuardedNDArray"),
            made ->
                made.withFlags(ClassFile.ACC_FINAL | ClassFile.ACC_SUPER | ClassFile.ACC_SYNTHETIC)
                    .withSuperclass(parent)
                    // GuardedNDArray(PtNDManager manager, long handle) { super(manager, handle); }
                    .withMethodBody(
                        INIT_NAME,
                        construct,
                        0,
                        code ->
                            code.aload(0)
                                .aload(1)
                                .lload(2)
                                .invokespecial(parent, INIT_NAME, construct)
                                .return_())
                    // public NDArrayEx getNDArrayInternal() { return operations(); }
                    .withMethodBody(
                        "getNDArrayInternal",
                        get,
                        ClassFile.ACC_PUBLIC,
                        code -> code.aload(0).invokevirtual(parent, "operations", get).areturn()));
  }
}
