/* The native methods of chaos/Bytecodes.java: what JVMTI says of the code of all classes, in an environment of its own. A class's
   hash is its tag, so that nothing needs to know it by name. */
#include <jni.h>
#include <jvmti.h>
#include <stdio.h>

static jvmtiEnv *jvmti;

static jlong hash_bytes(jlong hash, const unsigned char *bytes, jint length) {
    for (jint i = 0; i < length; i++) {
        hash = (hash ^ bytes[i]) * 1099511628211LL;
    }
    return hash;
}

static jlong hash_text(jlong hash, const char *text) {
    for (; *text; text++) {
        hash = (hash ^ (unsigned char)*text) * 1099511628211LL;
    }
    return hash;
}

static jlong hash_method(jmethodID method) {
    char *name, *signature;
    unsigned char *code;
    jint length;
    if ((*jvmti)->GetMethodName(jvmti, method, &name, &signature, NULL) != JVMTI_ERROR_NONE) {
        return 1;
    }
    jlong hash = hash_text(hash_text(7, name), signature);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)name);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    /* Native and abstract ones have none. */
    if ((*jvmti)->GetBytecodes(jvmti, method, &length, &code) == JVMTI_ERROR_NONE) {
        hash = hash_bytes(hash, code, length);
        (*jvmti)->Deallocate(jvmti, code);
    }
    return hash;
}

/* The sum: the order of methods may change. Zero where there is nothing to be compared. */
static jlong hash_class(jclass class) {
    jint status, count;
    jmethodID *methods;
    if ((*jvmti)->GetClassStatus(jvmti, class, &status) != JVMTI_ERROR_NONE || !(status & JVMTI_CLASS_STATUS_PREPARED) ||
        (*jvmti)->GetClassMethods(jvmti, class, &count, &methods) != JVMTI_ERROR_NONE) {
        return 0;
    }
    jlong sum = count;
    for (jint i = 0; i < count; i++) {
        sum += hash_method(methods[i]);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)methods);
    return sum;
}

static int prepare(JNIEnv *env) {
    jvmtiCapabilities wanted = {.can_tag_objects = 1, .can_get_bytecodes = 1};
    JavaVM *vm;
    return jvmti || ((*env)->GetJavaVM(env, &vm) == JNI_OK &&
                     (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) == JNI_OK &&
                     (*jvmti)->AddCapabilities(jvmti, &wanted) == JVMTI_ERROR_NONE);
}

JNIEXPORT jint JNICALL Java_Bytecodes_baseline(JNIEnv *env, jclass self) {
    jint count, known = 0;
    jclass *classes;
    if (!prepare(env) || (*jvmti)->GetLoadedClasses(jvmti, &count, &classes) != JVMTI_ERROR_NONE) {
        return -1;
    }
    for (jint i = 0; i < count; i++) {
        jlong hash = hash_class(classes[i]);
        known += hash != 0 && (*jvmti)->SetTag(jvmti, classes[i], hash) == JVMTI_ERROR_NONE;
        (*env)->DeleteLocalRef(env, classes[i]);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
    return known;
}

JNIEXPORT jstring JNICALL Java_Bytecodes_changed(JNIEnv *env, jclass self) {
    jint count, changed = 0;
    jclass *classes;
    char said[400] = "-1";
    if (!prepare(env) || (*jvmti)->GetLoadedClasses(jvmti, &count, &classes) != JVMTI_ERROR_NONE) {
        return (*env)->NewStringUTF(env, said);
    }
    char one[300] = "";
    for (jint i = 0; i < count; i++) {
        jlong tag = 0;
        (*jvmti)->GetTag(jvmti, classes[i], &tag);
        if (tag != 0 && hash_class(classes[i]) != tag) {
            char *signature;
            changed++;
            if ((*jvmti)->GetClassSignature(jvmti, classes[i], &signature, NULL) == JVMTI_ERROR_NONE) {
                snprintf(one, sizeof one, "%s", signature);
                (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
            }
        }
        (*env)->DeleteLocalRef(env, classes[i]);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
    snprintf(said, sizeof said, "%d %s", changed, one);
    return (*env)->NewStringUTF(env, said);
}
